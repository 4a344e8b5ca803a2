"""Schemes as recipes of litert-quantizer: plain data, each entry a pattern over output tensors, an operator and what is done to it.

The format is litert-quantizer's (its recipe.py); later entries win over earlier ones, and `*` means every operator that it can
do this to.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tfx_edge.schemas import QuantizationConfig
from tfx_edge.schemas.schemes import CALIBRATED, COMPUTED_IN_FLOAT, Granularity, Scheme

_EVERY_TENSOR = ".*"
_UNIFORM = "min_max_uniform_quantize"
_GRANULARITY: dict[Granularity, str] = {
    "channel": "CHANNELWISE",
    "tensor": "TENSORWISE",
    "block_32": "BLOCKWISE_32",
    "block_64": "BLOCKWISE_64",
    "block_128": "BLOCKWISE_128",
    "block_256": "BLOCKWISE_256",
}
# What has a form with 4-bit weights; litert-quantizer can make blocks of one of them alone and would leave the others in float.
_FOUR_BITS: dict[Scheme, tuple[str, ...]] = {
    "int4_weights": ("BATCH_MATMUL", "CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED"),
    "int4_dynamic_range": ("CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED"),
}
_IN_BLOCKS = "FULLY_CONNECTED"
# LiteRT's kernel for float activations and 8-bit weights reads a scale a channel, whatever the file has: with one it computes with
# whatever lies behind it in memory.
_BY_CHANNEL_ALONE = "DEPTHWISE_CONV_2D"


def block_size(granularity: Granularity) -> int | None:
    """Weights that share a scale, where it is blocks of them.

    >>> block_size("block_32"), block_size("channel")
    (32, None)
    """
    return int(granularity.removeprefix("block_")) if granularity.startswith("block_") else None


def recipe(
    config: QuantizationConfig, shared: Iterable[tuple[str, str]] = (), undivided: Iterable[tuple[str, str]] = ()
) -> tuple[dict[str, Any], ...]:
    """The recipe of a scheme; empty for `float32` without rules.

    Args:
        config: the scheme and the types of inputs and outputs.
        shared: operators whose weights share a few values, as `weights.sharing_operators` finds them. They get one scale instead of
            one a channel, which would make another integer of a value in each channel and so lose what compresses.
        undivided: operators whose weights don't divide into the blocks asked for, as `weights.undivided_operators` finds them. They get
            one scale a channel.

    >>> [step["operation"] for step in recipe(QuantizationConfig(scheme="int8", io_type="float32"))]
    ['*', 'INPUT', 'OUTPUT']
    """
    undivided = tuple(undivided)
    steps = [] if config.scheme == "float32" else [*_steps(config.scheme, config.granularity, shared, undivided)]
    for rule in config.rules:
        named = [op for op in undivided if rule.names(*op)] if block_size(rule.granularity) else ()
        steps += _steps(rule.scheme, rule.granularity, (), named, rule.tensor, rule.operator)
    if not config.needs_ranges or config.io_type != "float32":
        return tuple(steps)
    return (*steps, *(_float(operation=io) for io in ("INPUT", "OUTPUT")))


def _steps(
    scheme: Scheme,
    granularity: Granularity,
    shared: Iterable[tuple[str, str]],
    undivided: Iterable[tuple[str, str]],
    regex: str = _EVERY_TENSOR,
    operation: str = "*",
) -> Iterator[dict[str, Any]]:
    if scheme == "float32":
        yield _float(regex, operation)
        return
    if scheme == "float16":
        yield _step(_tensor(16, "TENSORWISE", "FLOAT"), None, "float_casting", regex, operation, in_float=True)
        return
    in_float = scheme in COMPUTED_IN_FLOAT
    by_channel = _step(_tensor(8, _GRANULARITY["channel"], "INT"), None, _UNIFORM, regex, _BY_CHANNEL_ALONE, in_float=in_float)
    needs_channels = granularity == "tensor" and not in_float and scheme not in CALIBRATED and operation in ("*", _BY_CHANNEL_ALONE)
    if scheme in _FOUR_BITS:
        yield from _four_bits(_FOUR_BITS[scheme], granularity, undivided, regex, operation, in_float=in_float)
        if needs_channels:
            yield by_channel
        return
    one_scale = _tensor(8, "TENSORWISE", "INT")
    weights = _tensor(8, _GRANULARITY[granularity], "INT")
    activations = None
    if scheme in CALIBRATED:
        wide = scheme == "int16x8"
        activations = _tensor(16 if wide else 8, "TENSORWISE", "INT", symmetric=wide)  # LiteRT's 16-bit kernels have no zero point
    yield _step(weights, activations, _UNIFORM, regex, operation, in_float=in_float)
    if needs_channels:
        yield by_channel
    for kind, name in shared:
        yield _step(one_scale, activations, _UNIFORM, _exactly(name), kind, in_float=in_float)


def _four_bits(
    kinds: tuple[str, ...], granularity: Granularity, undivided: Iterable[tuple[str, str]], regex: str, operation: str, *, in_float: bool
) -> Iterator[dict[str, Any]]:
    """8 bits for all, 4 for those that have such a form."""
    blocks = block_size(granularity) is not None
    coarse = "CHANNELWISE" if blocks else _GRANULARITY[granularity]
    yield _step(_tensor(8, coarse, "INT"), None, _UNIFORM, regex, operation, in_float=in_float)
    for kind in kinds:
        if operation in ("*", kind):
            fine = _GRANULARITY[granularity] if kind == _IN_BLOCKS else coarse
            yield _step(_tensor(4, fine, "INT"), None, _UNIFORM, regex, kind, in_float=in_float)
    if blocks:
        for kind, name in undivided:
            yield _step(_tensor(4, coarse, "INT"), None, _UNIFORM, _exactly(name), kind, in_float=in_float)


def _exactly(name: str) -> str:
    """Matches the operator whose first output has this name."""
    return f"^{re.escape(name)}(;|$)"


def _float(regex: str = _EVERY_TENSOR, operation: str = "*") -> dict[str, Any]:
    return {"regex": regex, "operation": operation, "algorithm_key": "no_quantize"}


def _tensor(num_bits: int, granularity: str, dtype: str, *, symmetric: bool = True) -> dict[str, Any]:
    return {"num_bits": num_bits, "symmetric": symmetric, "granularity": granularity, "dtype": dtype}


def _step(
    weights: dict[str, Any], activations: dict[str, Any] | None, algorithm: str, regex: str, operation: str, *, in_float: bool
) -> dict[str, Any]:
    how: dict[str, Any] = {
        "weight_tensor_config": weights,
        "compute_precision": "FLOAT" if in_float else "INTEGER",
        "explicit_dequantize": in_float,
    }
    if activations is not None:
        how["activation_tensor_config"] = activations
    return {"regex": regex, "operation": operation, "algorithm_key": algorithm, "op_config": how}

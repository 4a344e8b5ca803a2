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
_GRANULARITY: dict[Granularity, str] = {"channel": "CHANNELWISE", "tensor": "TENSORWISE"}


def recipe(config: QuantizationConfig, shared: Iterable[tuple[str, str]] = ()) -> tuple[dict[str, Any], ...]:
    """The recipe of a scheme; empty for `float32` without rules.

    Args:
        config: the scheme and the types of inputs and outputs.
        shared: operators whose weights share a few values, as `weights.sharing_operators` finds them. They get one scale instead of
            one a channel, which would make another integer of a value in each channel and so lose what compresses.

    >>> [step["operation"] for step in recipe(QuantizationConfig(scheme="int8", io_type="float32"))]
    ['*', 'INPUT', 'OUTPUT']
    """
    steps = [] if config.scheme == "float32" else [*_steps(config.scheme, config.granularity, shared)]
    for rule in config.rules:
        steps += _steps(rule.scheme, rule.granularity, (), rule.tensor, rule.operator)
    if not config.needs_calibration or config.io_type != "float32":
        return tuple(steps)
    return (*steps, *(_float(operation=io) for io in ("INPUT", "OUTPUT")))


def _steps(
    scheme: Scheme,
    granularity: Granularity,
    shared: Iterable[tuple[str, str]],
    regex: str = _EVERY_TENSOR,
    operation: str = "*",
) -> Iterator[dict[str, Any]]:
    if scheme == "float32":
        yield _float(regex, operation)
        return
    if scheme == "float16":
        yield _step(_tensor(16, "TENSORWISE", "FLOAT"), None, "float_casting", regex, operation, in_float=True)
        return
    one_scale = _tensor(8, "TENSORWISE", "INT")
    weights = _tensor(8, _GRANULARITY[granularity], "INT")
    activations = None
    if scheme in CALIBRATED:
        wide = scheme == "int16x8"
        activations = _tensor(16 if wide else 8, "TENSORWISE", "INT", symmetric=wide)  # LiteRT's 16-bit kernels have no zero point
    in_float = scheme in COMPUTED_IN_FLOAT
    yield _step(weights, activations, _UNIFORM, regex, operation, in_float=in_float)
    for kind, name in shared:
        yield _step(one_scale, activations, _UNIFORM, f"^{re.escape(name)}(;|$)", kind, in_float=in_float)


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

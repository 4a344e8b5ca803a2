"""Schemes as recipes of litert-quantizer: plain data, each entry a pattern over output tensors, an operator and what is done to it.

The format is litert-quantizer's (its recipe.py); later entries win over earlier ones, and `*` means every operator that it can
do this to.
"""

import re
from collections.abc import Iterable
from typing import Any

from tfx_edge.schemas import QuantizationConfig

_EVERY_TENSOR = ".*"


def recipe(config: QuantizationConfig, shared: Iterable[tuple[str, str]] = ()) -> tuple[dict[str, Any], ...]:
    """The recipe of a scheme; empty for `float32`.

    Args:
        config: the scheme and the types of inputs and outputs.
        shared: operators whose weights share a few values, as `weights.sharing_operators` finds them. They get one scale instead of
            one a channel, which would make another integer of a value in each channel and so lose what compresses.

    >>> [step["operation"] for step in recipe(QuantizationConfig(scheme="int8", io_type="float32"))]
    ['*', 'INPUT', 'OUTPUT']
    """
    if config.scheme == "float32":
        return ()
    if config.scheme == "float16":
        return (_step(_tensor(16, "TENSORWISE", "FLOAT"), None, algorithm="float_casting"),)
    weights = _tensor(8, "CHANNELWISE", "INT")
    activations = None if config.scheme == "dynamic_range" else _tensor(8, "TENSORWISE", "INT", symmetric=False)
    one_scale = _tensor(8, "TENSORWISE", "INT")
    steps = (
        _step(weights, activations),
        *(_step(one_scale, activations, regex=f"^{re.escape(name)}(;|$)", operation=kind) for kind, name in shared),
    )
    if config.scheme == "dynamic_range" or config.io_type == "int8":
        return steps
    return (*steps, *({"regex": _EVERY_TENSOR, "operation": io, "algorithm_key": "no_quantize"} for io in ("INPUT", "OUTPUT")))


def _tensor(num_bits: int, granularity: str, dtype: str, *, symmetric: bool = True) -> dict[str, Any]:
    return {"num_bits": num_bits, "symmetric": symmetric, "granularity": granularity, "dtype": dtype}


def _step(
    weights: dict[str, Any],
    activations: dict[str, Any] | None,
    algorithm: str = "min_max_uniform_quantize",
    regex: str = _EVERY_TENSOR,
    operation: str = "*",
) -> dict[str, Any]:
    half_precision = algorithm == "float_casting"
    how: dict[str, Any] = {
        "weight_tensor_config": weights,
        "compute_precision": "FLOAT" if half_precision else "INTEGER",
        "explicit_dequantize": half_precision,
    }
    if activations is not None:
        how["activation_tensor_config"] = activations
    return {"regex": regex, "operation": operation, "algorithm_key": algorithm, "op_config": how}

"""Schemes as recipes of litert-quantizer: plain data, each entry a pattern over output tensors, an operator and what is done to it.

The format is litert-quantizer's (its recipe.py); later entries win over earlier ones, and `*` means every operator that it can
do this to.
"""

from typing import Any

from tfx_edge.schemas import QuantizationConfig

_EVERY_TENSOR = ".*"


def recipe(config: QuantizationConfig) -> tuple[dict[str, Any], ...]:
    """The recipe of a scheme; empty for `float32`.

    >>> [step["operation"] for step in recipe(QuantizationConfig(scheme="int8", io_type="float32"))]
    ['*', 'INPUT', 'OUTPUT']
    """
    if config.scheme == "float32":
        return ()
    if config.scheme == "float16":
        return (_step(_tensor(16, "TENSORWISE", "FLOAT"), None, algorithm="float_casting"),)
    weights = _tensor(8, "CHANNELWISE", "INT")
    if config.scheme == "dynamic_range":
        return (_step(weights, None),)
    every = _step(weights, _tensor(8, "TENSORWISE", "INT", symmetric=False))
    if config.io_type == "int8":
        return (every,)
    return (every, *({"regex": _EVERY_TENSOR, "operation": io, "algorithm_key": "no_quantize"} for io in ("INPUT", "OUTPUT")))


def _tensor(num_bits: int, granularity: str, dtype: str, *, symmetric: bool = True) -> dict[str, Any]:
    return {"num_bits": num_bits, "symmetric": symmetric, "granularity": granularity, "dtype": dtype}


def _step(weights: dict[str, Any], activations: dict[str, Any] | None, algorithm: str = "min_max_uniform_quantize") -> dict[str, Any]:
    half_precision = algorithm == "float_casting"
    how: dict[str, Any] = {
        "weight_tensor_config": weights,
        "compute_precision": "FLOAT" if half_precision else "INTEGER",
        "explicit_dequantize": half_precision,
    }
    if activations is not None:
        how["activation_tensor_config"] = activations
    return {"regex": _EVERY_TENSOR, "operation": "*", "algorithm_key": algorithm, "op_config": how}

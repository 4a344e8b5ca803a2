"""Between real values and what a tensor of a flatbuffer holds: nothing wraps, nothing is guessed."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas import EdgeError, TensorSpec

STRING = "string"  # the dtype of text in a TensorSpec, TensorFlow's name for it; arrays hold it as objects
_BLOCK = 1 << 14  # values quantized at once: their float64 copy stays in the processor's cache


def quantize(values: NDArray[Any], dtype: str, scale: float, zero_point: int) -> NDArray[Any]:
    """Real values to integers: `clip(rint(values / scale) + zero_point)` to the range of the type.

    Rounds halves to even, as XNNPACK does; infinities saturate. NaN has no integer and must not come here. The division is in
    float64, which tells a quotient of two float32 numbers from the half next to it; float32 would round it onto the half.

    >>> quantize(np.array([0.26, 100.0, -np.inf]), "int8", 0.1, 0)
    array([   3,  127, -128], dtype=int8)
    """
    low, high = _bounds(dtype)
    flat = np.ravel(values)
    quantized = np.empty(flat.shape, dtype)
    block = np.empty(min(_BLOCK, len(flat)), np.float64)
    for at in range(0, len(flat), _BLOCK):
        real = block[: len(flat) - at]
        real[:] = flat[at : at + _BLOCK]  # first: a division by a Python number would be in float32
        real /= scale
        np.rint(real, out=real)
        real += zero_point
        np.maximum(real, low[: len(real)], out=real)
        np.minimum(real, high[: len(real)], out=real)
        quantized[at : at + _BLOCK] = real
    return quantized.reshape(values.shape)


@functools.cache
def _bounds(dtype: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of an integer type, a block of each: NumPy compares arrays six times as fast as an array and a number."""
    info = np.iinfo(dtype)
    return np.full(_BLOCK, info.min, np.float64), np.full(_BLOCK, info.max, np.float64)


def dequantize(values: NDArray[Any], scale: float, zero_point: int) -> NDArray[np.float32]:
    """Integers to real values: `scale * (values - zero_point)`."""
    # A difference of 16-bit integers is exact in float32; the product is then rounded once, as in LiteRT's DEQUANTIZE.
    real = np.subtract(values, zero_point, dtype=np.float32 if values.dtype.itemsize <= 2 else np.float64)
    real *= scale
    rounded: NDArray[np.float32] = real.astype(np.float32, copy=False)
    return rounded


def to_input(spec: TensorSpec, values: NDArray[Any], source: str, takes_nan: bool = True) -> NDArray[Any]:
    """Converts real values to what an input holds.

    Args:
        spec: of the input.
        values: `[n, ...]`, of the input's shape.
        source: what to call the batch in an error.
        takes_nan: whether NaN means something to a float input; False where the model quantizes it.

    Raises:
        EdgeError: another shape, a type that isn't the input's kind, or values that the input can't hold.
    """
    if values.ndim != len(spec.shape) or any(d not in (None, have) for d, have in zip(spec.shape[1:], values.shape[1:], strict=True)):
        raise EdgeError(
            f"{source}: feature {spec.name!r} has shape {('n', *values.shape[1:])}, the model's input takes {spec.shape}; "
            "give the model the features that it was trained on"
        )
    if spec.dtype == STRING:
        return _text(spec, values, source)
    target = np.dtype(spec.dtype)
    if values.dtype.kind not in "fiub" or target.kind not in "fiub":
        raise EdgeError(
            f"{source}: feature {spec.name!r} has type {values.dtype}, the model's input takes {target}; feed it {target} values"
        )
    if spec.scale is not None and spec.zero_point is not None:
        _refuse_nan(spec, values, source, f"which the model's {target} input can't take")
        return quantize(values, spec.dtype, spec.scale, spec.zero_point)
    if not takes_nan:
        _refuse_nan(spec, values, source, "which the model quantizes, and an integer can't be NaN")
    return values if values.dtype == target else _cast(spec, values, target, source)


def to_real(spec: TensorSpec, values: NDArray[Any]) -> NDArray[Any]:
    """What an output holds, as real values: float32 where it is quantized, as it is otherwise."""
    if spec.scale is None or spec.zero_point is None:
        return values
    return dequantize(values, spec.scale, spec.zero_point)


def no_rows(spec: TensorSpec) -> NDArray[Any]:
    """The real values of an output for no examples."""
    dtype: Any = object if spec.dtype == STRING else spec.dtype if spec.scale is None else np.float32
    return np.zeros((0, *(d or 0 for d in spec.shape[1:])), dtype)


def _text(spec: TensorSpec, values: NDArray[Any], source: str) -> NDArray[Any]:
    values = values if values.dtype.kind == "O" else values.astype(object) if values.dtype.kind in "SU" else values
    if values.dtype.kind != "O" or not all(isinstance(v, (bytes, str)) for v in values.flat):
        raise EdgeError(f"{source}: feature {spec.name!r} ({values.dtype}) isn't text, which the model's input takes; feed it bytes")
    return values


def _refuse_nan(spec: TensorSpec, values: NDArray[Any], source: str, why: str) -> None:
    # The minimum of values with NaN among them is NaN, and costs no array of booleans.
    if values.dtype.kind == "f" and values.size and np.isnan(values.min()):
        raise EdgeError(f"{source}: feature {spec.name!r} holds NaN, {why}; impute it in Transform")


def _cast(spec: TensorSpec, values: NDArray[Any], target: np.dtype[Any], source: str) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        converted = values.astype(target)
    if target.kind != "f":
        fits = values.dtype.kind != "f" and np.array_equal(converted, values)
    else:
        fits = np.can_cast(values.dtype, target) or bool((np.isfinite(converted) | ~np.isfinite(values)).all())
    if not fits:
        extent = f", {values.min()} to {values.max()}" if values.size else ""
        raise EdgeError(
            f"{source}: feature {spec.name!r} ({values.dtype}{extent}) doesn't fit the model's {target} input; cast it in Transform"
        )
    return converted

"""Constants of a quantized flatbuffer: the integers of weights, their scales, and the real values that they stand for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert.constants import read_constants


@dataclass(frozen=True)
class Integers:
    """A constant as integers.

    Attributes:
        values: of the tensor's shape.
        scale: broadcasts over them.
        bits: 4 or 8 for weights, 32 or 64 for a bias.
    """

    values: NDArray[Any]
    scale: NDArray[np.float64]
    bits: int

    @property
    def real(self) -> NDArray[np.float64]:
        """What the integers stand for."""
        return self.values * self.scale


def integers(parsed: Any, index: int) -> Integers | None:
    """A quantized constant of the main graph; None for one in float, with a zero point, or with scales a block."""
    tensor = parsed.subgraphs[0].tensors[index]
    how = tensor.quantization
    if how is None or how.scale is None or (how.zeroPoint is not None and np.any(how.zeroPoint)):
        return None
    shape = tuple(int(d) for d in tensor.shape)
    scale = np.asarray(how.scale, np.float64)
    axis = how.quantizedDimension
    if scale.size not in (1, shape[axis]):
        return None
    packed = tensor.type == schema.TensorType.INT4
    values = _unpack(parsed.buffers[tensor.buffer].data, shape) if packed else read_constants(parsed).get(index)
    if values is None or values.dtype.kind != "i":
        return None
    bits = 4 if packed else values.dtype.itemsize * 8
    return Integers(values, scale.reshape([-1 if i == axis and scale.size > 1 else 1 for i in range(len(shape))]), bits)


def real_values(parsed: Any, index: int) -> NDArray[np.float64] | None:
    """A constant of the main graph as real values, whatever holds it; None where that can't be read."""
    found = integers(parsed, index)
    if found is not None:
        return found.real
    plain = read_constants(parsed).get(index)
    return plain.astype(np.float64) if plain is not None and plain.dtype.kind == "f" else None


def _unpack(data: Any, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """4-bit integers, two a byte, the first in the lower half."""
    packed = np.asarray(data, np.uint8)
    halves = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[: int(np.prod(shape))].astype(np.int8)
    return np.where(halves > 7, halves - 16, halves).astype(np.int8).reshape(shape)

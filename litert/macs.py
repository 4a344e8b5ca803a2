"""Multiplications of one operator, counted by the sizes of its tensors.

What is counted is what a dense kernel multiplies, padding and zeros included, as `optimize.macs` does for Keras layers: a weight times
an activation, or two activations in a matrix product. Additions, activations, pooling and whatever else multiplies no matrices count 0.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Extent:
    """The size of a tensor for one batch.

    Attributes:
        shape: its dimensions, None where one isn't known.
        elements: how many elements it has, which can be known where a dimension isn't; None if not.
    """

    shape: tuple[int | None, ...]
    elements: int | None

    @classmethod
    def of(cls, shape: Sequence[int | None]) -> "Extent":
        """The extent whose elements are as many as its shape tells."""
        known = [size for size in shape if size is not None]
        return cls(tuple(shape), math.prod(known) if len(known) == len(shape) else None)


Extents: TypeAlias = Sequence[Extent | None]


def count_macs(kind: str, inputs: Extents, outputs: Extents, options: Any = None) -> int | None:
    """Multiplications of one operator for one batch.

    Args:
        kind: LiteRT's name of the operator.
        inputs: the sizes of its inputs, None for one that is left out.
        outputs: the sizes of its outputs.
        options: its options as LiteRT's schema has them, or None.

    Returns:
        The count; None where it can't be known: an operator that isn't known, one that runs other graphs, or unknown sizes.

    >>> image, kernel, features = Extent.of((1, 8, 8, 2)), Extent.of((4, 3, 3, 2)), Extent.of((1, 6, 6, 4))
    >>> count_macs("CONV_2D", [image, kernel, None], [features])  # 6 x 6 places, 3 x 3 x 2 weights, 4 filters
    2592
    """
    if kind in _FORMULAS:
        try:
            return _FORMULAS[kind](inputs, outputs, options)
        except (AttributeError, IndexError, TypeError, ValueError, ZeroDivisionError):  # a size isn't known, or the operator is damaged
            return None
    return None if re.fullmatch(_UNKNOWN, kind) else 0


_UNKNOWN = r"custom:.*|UNKNOWN_\d+|STABLEHLO_\w+|WHILE|IF|CALL|DELEGATE|RFFT2D|BIDIRECTIONAL_SEQUENCE_\w+"


def _convolution(inputs: Extents, outputs: Extents, _: Any) -> int:
    """Each output element takes one filter, whose first dimension counts the filters."""
    return _elements(outputs[0]) * (_elements(inputs[1]) // _size(inputs[1], 0))


def _depthwise(inputs: Extents, outputs: Extents, _: Any) -> int:
    """Each output element takes the window of one channel, which is the last dimension."""
    return _elements(outputs[0]) * (_elements(inputs[1]) // _size(inputs[1], -1))


def _transposed(inputs: Extents, _: Extents, __: Any) -> int:
    """Each place of the input puts the whole kernel down; the input comes third, behind the output's shape and the kernel."""
    return _elements(inputs[2]) // _size(inputs[2], -1) * _elements(inputs[1])


def _fully_connected(inputs: Extents, _: Extents, __: Any) -> int:
    """Each input element meets each unit: the input's own shape may be one that LiteRT flattens."""
    return _elements(inputs[0]) * _size(inputs[1], 0)


def _batch_matmul(inputs: Extents, outputs: Extents, options: Any) -> int:
    transposed = bool(options is not None and options.adjX)
    return _elements(outputs[0]) * _size(inputs[0], -2 if transposed else -1)


def _recurrent(*matrices: int) -> Callable[[Extents, Extents, Any], int]:
    """All matrices in each time step of each sequence, some of which may be left out."""

    def count(inputs: Extents, _: Extents, __: Any) -> int:
        steps = _elements(inputs[0]) // _size(inputs[0], -1)  # of all sequences, whether time or the batch comes first
        return steps * sum(_elements(inputs[i]) for i in matrices if i < len(inputs) and inputs[i] is not None)

    return count


def _svdf(inputs: Extents, _: Extents, __: Any) -> int:
    """The features' filters on the newest frame, the time filters on all that it remembers."""
    return _size(inputs[0], 0) * (_elements(inputs[1]) + _elements(inputs[2]))


_LSTM = (*range(1, 9), 16)  # input and recurrent weights of four gates, then the projection

_FORMULAS: Mapping[str, Callable[[Extents, Extents, Any], int]] = {
    "CONV_2D": _convolution,
    "CONV_3D": lambda inputs, outputs, _: _elements(outputs[0]) * (_elements(inputs[1]) // _size(inputs[1], -1)),
    "CONV_3D_TRANSPOSE": _transposed,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transposed,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "LSTM": _recurrent(*_LSTM),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _recurrent(*_LSTM),
    "RNN": _recurrent(1, 2),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _recurrent(1, 2),
    "SVDF": _svdf,
}


def _elements(extent: Extent | None) -> int:
    if extent is None or extent.elements is None:
        raise ValueError("unknown size")
    return extent.elements


def _size(extent: Extent | None, axis: int) -> int:
    if extent is None or (size := extent.shape[axis]) is None:
        raise ValueError("unknown size")
    return size

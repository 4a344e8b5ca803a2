"""Weighted operators as products of matrices, so that one formula holds for dense, convolution and depthwise layers.

    outputs[g, r, o] = sum over k of rows[g, r, k] * matrix[g, o, k]

`g` counts groups (1 but for depthwise and grouped convolutions), `r` rows (an example, or a position in an image), `o` the
outputs of a group, `k` what is summed over. Layouts and padding are those of LiteRT's kernels (conv.h, depthwiseconv_float.h,
padding.h of tflite/kernels).
"""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert.corrections.operators import Operator


def to_matrix(op: Operator, weights: NDArray[Any], inputs: int) -> NDArray[Any]:
    """Weights as `[g, o, k]`.

    Args:
        op: whose weights they are.
        weights: in the operator's own layout.
        inputs: size of the last axis of its input.
    """
    if op.kind == "DEPTHWISE_CONV_2D":
        height, width, outputs = weights.shape[1:]
        return weights.reshape(height * width, inputs, outputs // inputs).transpose(1, 2, 0)
    if op.kind == "CONV_2D":
        groups = inputs // weights.shape[3]
        return weights.reshape(groups, weights.shape[0] // groups, -1)
    return weights[None]


def from_matrix(op: Operator, matrix: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The inverse of `to_matrix`, for weights of a shape."""
    return (matrix.transpose(2, 0, 1) if op.kind == "DEPTHWISE_CONV_2D" else matrix).reshape(shape)


def to_rows(op: Operator, values: NDArray[Any], shape: tuple[int, ...], picked: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """An input as `[g, r, k]`.

    Args:
        op: whose input it is.
        values: a batch of it.
        shape: of the operator's weights.
        picked: the rows to take, from 0 to `row_count`; None for all.
    """
    if op.kind == "FULLY_CONNECTED":
        flat = values.reshape(-1, shape[1])
        return (flat if picked is None else flat[picked])[None]
    windows = _windows(op, values, shape)
    batch, high, wide, channels, *kernel = windows.shape
    if picked is None:
        picked = np.arange(batch * high * wide)
    at = np.unravel_index(picked, (batch, high, wide))
    taken = windows[at]  # [r, channels, kernel height, kernel width]
    if op.kind == "DEPTHWISE_CONV_2D":
        return taken.reshape(len(picked), channels, -1).transpose(1, 0, 2)
    groups = channels // shape[3]
    grouped = taken.reshape(len(picked), groups, shape[3], *kernel).transpose(1, 0, 3, 4, 2)
    return grouped.reshape(groups, len(picked), -1)


def row_count(op: Operator, values: NDArray[Any], shape: tuple[int, ...]) -> int:
    """How many rows a batch of an input has."""
    if op.kind == "FULLY_CONNECTED":
        return values.size // shape[1]
    return int(np.prod(_windows(op, values, shape).shape[:3]))


def product(rows: NDArray[Any], matrix: NDArray[Any]) -> NDArray[Any]:
    """`[g, r, o]` of rows and a matrix."""
    result: NDArray[Any] = rows @ matrix.transpose(0, 2, 1)
    return result


def _windows(op: Operator, images: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A view `[n, y, x, channels, kernel height, kernel width]` of what each output position sees."""
    padding, spans, steps = [(0, 0)], [], []
    for axis, size, stride, dilation in (
        (1, shape[1], op.options.strideH, op.options.dilationHFactor),
        (2, shape[2], op.options.strideW, op.options.dilationWFactor),
    ):
        span = (size - 1) * dilation + 1
        missing = max((-(-images.shape[axis] // stride) - 1) * stride + span - images.shape[axis], 0)
        padding.append((missing // 2, missing - missing // 2) if op.options.padding == schema.Padding.SAME else (0, 0))
        spans.append(span)
        steps.append((slice(None, None, stride), slice(None, None, dilation)))
    padded = np.pad(images, [*padding, (0, 0)])
    (down, rows), (across, columns) = steps
    seen: NDArray[Any] = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(1, 2))  # type: ignore[call-overload]
    return seen[:, down, across, :, rows, columns]

"""What stands between two layers: whether a positive factor a channel passes through it."""

from typing import Any

import numpy as np

from tfx_edge.litert.constants import read_constants
from tfx_edge.litert.corrections.operators import OUTPUT_AXIS, operators

_FUSED = (0, 1)  # NONE and RELU, LiteRT's ActivationFunctionType
_PASSING = frozenset({"RELU", "LEAKY_RELU", "PRELU", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"})
_POOLING = frozenset({"MAX_POOL_2D", "AVERAGE_POOL_2D"})
_SHAPING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
_REDUCING = frozenset({"MEAN", "SUM", "REDUCE_MAX"})


def following(parsed: Any, tensor: int, channels: int) -> int | str:
    """Follows a tensor up to the weighted operator that alone reads it, through operators that commute with positive factors.

    Args:
        parsed: as `inspect.parse` gives it.
        tensor: index of a layer's output.
        channels: size of its last axis.

    Returns:
        Index of the tensor that the weighted operator reads, or why there is none.
    """
    graph = parsed.subgraphs[0]
    constants = read_constants(parsed)
    while True:
        if tensor in graph.outputs:
            return "its output is the model's"
        # SHAPE reads no values; a converter puts it before RESHAPE where the batch is open.
        readers = [(kind, op) for kind, op in operators(parsed) if tensor in op.inputs and kind != "SHAPE"]
        if len(readers) != 1:
            return f"its output has {len(readers)} readers, not one"
        [(kind, op)] = readers
        if kind in OUTPUT_AXIS and op.inputs[0] == tensor:
            return tensor
        if not _passes(parsed, kind, op, tensor, channels, constants):
            return f"{kind} behind it doesn't pass a positive factor a channel on"
        tensor = int(op.outputs[0])


def _passes(parsed: Any, kind: str, op: Any, tensor: int, channels: int, constants: dict[int, Any]) -> bool:
    if op.inputs[0] != tensor:
        return False
    tensors = parsed.subgraphs[0].tensors
    if kind in _POOLING:
        return op.builtinOptions.fusedActivationFunction in _FUSED
    if kind in _SHAPING:  # the last axis counts the channels round and round
        shape = tensors[op.outputs[0]].shape
        return shape is not None and len(shape) > 0 and int(shape[-1]) % channels == 0
    if kind in _REDUCING:
        axes, rank = constants.get(int(op.inputs[1])), len(tensors[tensor].shape)
        return axes is not None and rank - 1 not in np.mod(axes, rank)
    if kind == "PAD":
        amounts = constants.get(int(op.inputs[1]))
        return amounts is not None and not amounts[-1].any()
    return kind in _PASSING

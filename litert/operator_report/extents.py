"""Sizes of a graph's tensors for one batch: a flatbuffer writes 1 for each size that the input decides, which would count too little.

A dense layer on a sequence, for example, is flattened to `[batch * steps, features]` on the way, with 1 in the place of the product.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfx_edge.litert import inspect
from tfx_edge.litert.fields import shape
from tfx_edge.litert.macs import Extent


def extents(parsed: Any, graph: Any) -> tuple[list[Extent | None], int]:
    """The sizes of a graph's tensors, for a batch of one example where the batch is open.

    Open sizes are followed from the inputs through the operators: a RESHAPE keeps the number of elements, a dense layer the number of
    rows, and any other operator the sizes of an input that is open in the same places.

    Args:
        parsed: the flatbuffer, as `inspect.parse` gives it.
        graph: one of its graphs.

    Returns:
        By tensor its size; and the examples in the batch, 1 where it is open.
    """
    found: list[Extent | None] = [_declared(tensor, None) for tensor in graph.tensors]
    inputs = [int(i) for i in graph.inputs] if graph.inputs is not None else []
    for index in inputs:
        found[index] = _declared(graph.tensors[index], 1)
    for op in graph.operators or ():
        kind = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
        for index in op.outputs if op.outputs is not None else ():
            if -1 in _signature(graph.tensors[index]):
                found[index] = _followed(parsed, kind, op, graph, index, found)
    sizes = {found[index].shape[0] if found[index].shape else None for index in inputs}  # type: ignore[union-attr]
    batch = next(iter(sizes)) if len(sizes) == 1 else None
    return found, batch or 1


def _followed(parsed: Any, kind: str, op: Any, graph: Any, index: int, found: Sequence[Extent | None]) -> Extent:
    signature = _signature(graph.tensors[index])
    inputs = [int(i) for i in op.inputs if i >= 0] if op.inputs is not None else []
    elements = _elements(kind, [found[i] for i in inputs])
    alike = [e for i in inputs if _signature(graph.tensors[i]) == signature and (e := found[i]) is not None]
    if elements is None and alike and not kind.endswith("_ND"):
        return max(alike, key=lambda e: e.elements or 0)
    if elements is None:  # the batch stays as large, and what else is open isn't known
        return _declared(graph.tensors[index], _rows(parsed, kind, op, graph, found))
    known = math.prod(size for size in signature if size > 0)
    single = signature.count(-1) == 1 and known and elements % known == 0
    return Extent(tuple((elements // known if single else None) if size < 0 else size for size in signature), elements)


def _rows(parsed: Any, kind: str, op: Any, graph: Any, found: Sequence[Extent | None]) -> int | None:
    """The first dimension that an operator hands on: the batch, of which a dilated convolution makes a larger one and back."""
    inputs = [int(i) for i in op.inputs if i >= 0] if op.inputs is not None else []
    rows = next((e.shape[0] for i in inputs if _signature(graph.tensors[i])[:1] == (-1,) and (e := found[i]) is not None), 1)
    if rows is None or kind not in ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"):
        return rows
    data = parsed.buffers[graph.tensors[inputs[1]].buffer].data
    if data is None:
        return None
    block = math.prod(int(size) for size in np.asarray(data, np.uint8).view(np.int32))
    return rows * block if kind == "SPACE_TO_BATCH_ND" else rows // block


def _elements(kind: str, inputs: Sequence[Extent | None]) -> int | None:
    """How many elements an operator gives, where that follows from how many it takes."""
    if not inputs or inputs[0] is None or inputs[0].elements is None:
        return None
    if kind in ("EXPAND_DIMS", "RESHAPE", "SQUEEZE"):
        return inputs[0].elements
    if kind == "FULLY_CONNECTED" and len(inputs) > 1 and (weights := inputs[1]) is not None and len(weights.shape) == 2:
        units, width = weights.shape
        return inputs[0].elements // width * units if units and width else None
    return None


def _declared(tensor: Any, batch: int | None) -> Extent:
    """What the file says, with the given size for a batch that is open."""
    return Extent.of([size if size >= 0 else batch if axis == 0 else None for axis, size in enumerate(_signature(tensor))])


def _signature(tensor: Any) -> tuple[int, ...]:
    """The shape with -1 for what is open."""
    return tuple(max(-1, size) for size in shape(tensor))

"""Inputs made up for a flatbuffer of which no examples are at hand, such as its operators can take."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.fields import indices, some, text
from tfx_edge.litert.quantization import STRING
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import TensorRanges, TensorSpec

Bounds = tuple[float, float]

# Behind these an integer is still the same integer.
_MOVE = {"CONCATENATION", "EXPAND_DIMS", "RESHAPE", "SLICE", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE"}
_WHOLE = {schema.TensorType.INT32, schema.TensorType.INT64, schema.TensorType.UINT32, schema.TensorType.UINT64}
_NARROW = ("int8", "uint8")


def made_up(model: bytes, runner: Runner, ranges: TensorRanges | None, count: int, seed: int) -> dict[str, NDArray[Any]]:
    """Values for every input, the same for the same arguments.

    Quantized inputs take all that they can hold. Float ones lie within their calibrated range, without one they are standard
    normal. Integers lie within what every operator that reads them says: the rows of a table, the depth of a one-hot encoding, the
    calibrated range of what they are cast to. Where one doesn't tell, 8-bit integers take any value, and others are 0 or 1: an
    index of any table, and a truth value. Text is empty.

    Args:
        model: the flatbuffer.
        runner: of it.
        ranges: calibrated, by tensor.
        count: of examples.
        seed: of the values.

    Returns:
        `[count, ...]` real values by input; open dimensions are 1.
    """
    generator = np.random.default_rng(seed)
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[runner.entry.subgraph]
    made = {}
    for spec in runner.signature.inputs:
        index = runner.entry.inputs[spec.name]
        shape = (count, *(size or 1 for size in spec.shape[1:]))
        if spec.dtype == STRING:
            made[spec.name] = np.full(shape, b"", object)
        elif spec.scale is None and np.dtype(spec.dtype).kind != "f":
            made[spec.name] = _integers(spec, shape, _integer_bounds(parsed, graph, index, spec, ranges), generator)
        else:
            made[spec.name] = _reals(shape, _real_bounds(graph, index, spec, ranges), generator)
    return made


def _reals(shape: tuple[int, ...], bounds: Bounds | None, generator: np.random.Generator) -> NDArray[Any]:
    values: NDArray[Any] = generator.normal(size=shape) if bounds is None else generator.uniform(*bounds, shape)
    return values.astype(np.float32)


def _integers(spec: TensorSpec, shape: tuple[int, ...], bounds: Bounds, generator: np.random.Generator) -> NDArray[Any]:
    low, high = bounds
    if spec.dtype == "bool":
        low, high = 0, 1
    return generator.integers(int(np.ceil(low)), int(np.floor(high)), shape, endpoint=True).astype(spec.dtype)


def _real_bounds(graph: Any, index: int, spec: TensorSpec, ranges: TensorRanges | None) -> Bounds | None:
    if spec.scale is not None and spec.zero_point is not None:
        info = np.iinfo(spec.dtype)
        return spec.scale * (info.min - spec.zero_point), spec.scale * (info.max - spec.zero_point)
    return _calibrated(graph, index, ranges)


def _integer_bounds(parsed: Any, graph: Any, index: int, spec: TensorSpec, ranges: TensorRanges | None) -> Bounds:
    said = list(_said(parsed, graph, index, ranges))
    info = None if spec.dtype == "bool" else np.iinfo(spec.dtype)
    unknown = (float(info.min), float(info.max)) if info and spec.dtype in _NARROW else (0.0, 1.0)
    known = [bounds for bounds in said if bounds is not None]
    if not said or len(known) < len(said) or info is None:
        return unknown
    low, high = max(info.min, *(b[0] for b in known)), min(info.max, *(b[1] for b in known))
    return (low, high) if np.ceil(low) <= np.floor(high) else unknown


def _said(parsed: Any, graph: Any, index: int, ranges: TensorRanges | None) -> Iterator[Bounds | None]:
    """What each operator that the integers reach says of them; None: nothing."""
    reached, seen = [index], set()
    while reached:
        at = reached.pop()
        if at in seen:
            continue
        seen.add(at)
        for op in some(graph.operators):
            if at not in indices(op.inputs):
                continue
            kind = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
            outputs = indices(op.outputs)
            if kind in _MOVE or (kind == "CAST" and graph.tensors[outputs[0]].type in _WHOLE):
                reached += outputs
            elif kind in ("GATHER", "EMBEDDING_LOOKUP"):
                table = graph.tensors[op.inputs[0 if kind == "GATHER" else 1]]
                yield 0, int(table.shape[op.builtinOptions.axis if kind == "GATHER" and op.builtinOptions else 0]) - 1
            elif kind == "ONE_HOT":
                yield _depth(parsed, graph.tensors[op.inputs[1]])
            else:
                yield _calibrated(graph, outputs[0], ranges) if kind == "CAST" else None


def _depth(parsed: Any, tensor: Any) -> Bounds | None:
    data = parsed.buffers[tensor.buffer].data
    return None if data is None else (0, int(np.frombuffer(bytes(data), np.int32)[0]) - 1)


def _calibrated(graph: Any, index: int, ranges: TensorRanges | None) -> Bounds | None:
    known = ranges.ranges.get(text(graph.tensors[index].name)) if ranges else None
    return (known.min, known.max) if known else None

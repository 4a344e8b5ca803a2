"""One flatbuffer put together from another and parts of a second: buffers, operator codes and graphs count anew, nothing is left over."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.calls import called_graphs, calls
from tfx_edge.litert.entry import SIGNATURE
from tfx_edge.litert.fields import some
from tfx_edge.litert.operator_codes import operator_code
from tfx_edge.litert.packing import pack

# Version of QUANTIZE by its result, and the oldest runtime that has it, as LiteRT's tflite/tools/versioning (op_version.cc and
# runtime_version.cc) has them.
QUANTIZE = {
    schema.TensorType.INT8: (1, "1.14.0"),
    schema.TensorType.UINT8: (1, "1.14.0"),
    schema.TensorType.INT16: (2, "1.15.0"),
}


class Assembly:
    """A new model in the making, from two parsed ones, which must not be used otherwise any more.

    Its main graph is made by whoever uses this, of their tensors and operators; all else is here.
    """

    def __init__(self, front: Any, front_entry: int, back: Any, back_entry: int) -> None:
        """Takes all of two models but their main graphs.

        Args:
            front: parsed by `inspect.parse`; of it remain buffers, operator codes and graphs.
            front_entry: index of its main graph.
            back: the same; its metadata, description and version remain too.
            back_entry: index of its main graph.
        """
        self._model = back
        self._runtimes = [runtime for runtime in map(inspect.written_runtime, (front, back)) if runtime is not None]
        inner = [(back, i) for i in range(len(back.subgraphs)) if i != back_entry]
        inner += [(front, i) for i in range(len(front.subgraphs)) if i != front_entry]
        self._inner = [model.subgraphs[i] for model, i in inner]
        for model, buffers, codes in ((back, 0, 0), (front, len(back.buffers), len(back.operatorCodes))):
            places = {i: 1 + place for place, (of, i) in enumerate(inner) if of is model}
            for graph in model.subgraphs:
                _renumber(graph, places, buffers, codes)
        back.buffers = [*back.buffers, *front.buffers]
        back.operatorCodes = [*back.operatorCodes, *front.operatorCodes]

    def quantize(self, source: int, result: int, kind: int) -> Any:
        """An operator from a float32 tensor to one of a type in `QUANTIZE`, by their indices in the main graph."""
        version, runtime = QUANTIZE[kind]
        self._runtimes.append(runtime)
        op = schema.OperatorT()
        op.opcodeIndex = operator_code(self._model, schema.BuiltinOperator.QUANTIZE, version)
        op.inputs, op.outputs = [source], [result]
        op.builtinOptionsType, op.builtinOptions = schema.BuiltinOptions.QuantizeOptions, schema.QuantizeOptionsT()
        return op

    def finish(self, main: Any, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> bytes:
        """The file, without what its main graph doesn't reach.

        Args:
            main: the graph.
            inputs: of the signature `serving_default`: indices of tensors by name.
            outputs: the same.
        """
        model = self._model
        model.subgraphs = _reached([main, *self._inner])
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = SIGNATURE.encode(), 0
        signature.inputs, signature.outputs = _map(inputs), _map(outputs)
        model.signatureDefs = [signature]
        inspect.write_runtime(model, self._runtimes)
        _share_codes(model)
        _drop_buffers(model)
        return pack(model)


def _renumber(graph: Any, graphs: Mapping[int, int], buffers: int, codes: int) -> None:
    for tensor in some(graph.tensors):
        tensor.buffer += buffers
    for op in some(graph.operators):
        op.opcodeIndex += codes
        _call(op, graphs)


def _call(op: Any, graphs: Mapping[int, int]) -> None:
    """Gives the graphs that an operator calls their new numbers."""
    for options, field, value in calls(op):
        setattr(options, field, graphs[int(value)] if np.ndim(value) == 0 else [graphs[int(v)] for v in value])


def _reached(graphs: list[Any]) -> list[Any]:
    """The first graph and those that it calls, with new numbers in their calls."""
    pending, found = [0], set()
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending += [called for op in some(graphs[number].operators) for called in called_graphs(op)]
    places = {old: new for new, old in enumerate(sorted(found))}
    kept = [graphs[old] for old in places]
    for op in (op for graph in kept for op in some(graph.operators)):
        _call(op, places)
    return kept


def _map(tensors: Mapping[str, int]) -> list[Any]:
    entries = []
    for name, index in tensors.items():
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = name.encode(), index
        entries.append(entry)
    return entries


def _share_codes(model: Any) -> None:
    """One operator code for each kind and version, and none that no operator has."""
    places: dict[tuple[Any, ...], int] = {}
    codes: list[Any] = []
    for op in (op for graph in model.subgraphs for op in some(graph.operators)):
        code = model.operatorCodes[op.opcodeIndex]
        kind = tuple(vars(code).values())
        if kind not in places:
            places[kind] = len(codes)
            codes.append(code)
        op.opcodeIndex = places[kind]
    model.operatorCodes = codes


def _drop_buffers(model: Any) -> None:
    """Leaves buffer 0, which is empty, and those of a tensor or of metadata."""
    places = {0: 0}
    for owner in (*(t for graph in model.subgraphs for t in some(graph.tensors)), *(model.metadata or ())):
        owner.buffer = places.setdefault(owner.buffer, len(places))
    model.buffers = [model.buffers[old] for old in places]
    model.metadataBuffer = None  # an older list of the same

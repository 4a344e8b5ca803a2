"""Which of a tensor's forms, integers, those requantized, or the numbers behind a DEQUANTIZE, is read where.

Where a tensor is an output and is read as well, litert-quantizer gives integer kernels the numbers, or a graph the form that another
operator reads as its output. LiteRT checks no types there: such a kernel reads and writes beyond its memory, which ends the process or
gives noise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.fields import holds_integers
from tfx_edge.litert.operator_codes import operator_code
from tfx_edge.litert.schema_names import names
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.schemes import IoType

_CONVERTS = ("QUANTIZE", "DEQUANTIZE")
_CALLS = ("CALL", "IF", "WHILE")  # hand tensors of any type on


@dataclass(frozen=True)
class Outputs:
    """What a signature of a float flatbuffer gives.

    Attributes:
        graph: its graph's outputs, by index of the tensor.
        named: the same by the signature's names.
    """

    graph: tuple[int, ...]
    named: Mapping[bytes, int]


def outputs(float_model: bytes) -> tuple[Outputs, ...]:
    """The outputs of a float flatbuffer, a signature after the other."""
    parsed = inspect.parse(float_model)
    return tuple(
        Outputs(
            graph=tuple(int(i) for i in parsed.subgraphs[signature.subgraphIndex].outputs),
            named={output.name: int(output.tensorIndex) for output in signature.outputs},
        )
        for signature in parsed.signatureDefs or ()
    )


def mend_wiring(parsed: Any, before: Sequence[Outputs], io_type: IoType) -> None:
    """Gives operators with integer outputs the integers, and signatures and their graphs the float model's outputs in the type asked for.

    Args:
        parsed: what litert-quantizer wrote, as `inspect.parse` gives it: the float model's tensors keep their places. It is changed.
        before: the float model's, as `outputs` gives them.
        io_type: of the outputs that stand for real values.
    """
    for graph in parsed.subgraphs:
        sources = _sources(parsed, graph)
        for op, kind in _operators(parsed, graph):
            if kind not in _CONVERTS and (types := {graph.tensors[i].type for i in op.outputs if holds_integers(graph.tensors[i])}):
                op.inputs = [source if graph.tensors[source := sources.get(int(i), int(i))].type in types else int(i) for i in op.inputs]
    for signature, real in zip(parsed.signatureDefs or (), before, strict=True):
        graph = parsed.subgraphs[signature.subgraphIndex]
        places = {i: _output(parsed, graph, i, int(now), io_type) for i, now in zip(real.graph, graph.outputs, strict=True)}
        graph.outputs = [places[i] for i in real.graph]
        for output in signature.outputs:
            output.tensorIndex = places[real.named[output.name]]


def _output(parsed: Any, graph: Any, index: int, now: int, io_type: IoType) -> int:
    """The form of a float model's output that a quantized one gives: as it was computed, or converted from that."""
    if holds_integers(graph.tensors[index]):
        return index if io_type != "float32" else _numbers(parsed, graph, index)
    converted = any(kind == "QUANTIZE" and (op.inputs[0], op.outputs[0]) == (index, now) for op, kind in _operators(parsed, graph))
    return now if converted else index


def _numbers(parsed: Any, graph: Any, index: int) -> int:
    """The output of a DEQUANTIZE of a tensor; a new one where there is none."""
    known = next((result for result, source in _sources(parsed, graph).items() if source == index), None)
    if known is not None:
        return known
    source, result, op = graph.tensors[index], schema.TensorT(), schema.OperatorT()
    result.name, result.type = source.name + b"_dequant", schema.TensorType.FLOAT32
    result.shape, result.shapeSignature = source.shape, source.shapeSignature
    graph.tensors.append(result)
    op.opcodeIndex, op.inputs, op.outputs = operator_code(parsed, schema.BuiltinOperator.DEQUANTIZE, 2), [index], [len(graph.tensors) - 1]
    graph.operators.append(op)
    return len(graph.tensors) - 1


def _sources(parsed: Any, graph: Any) -> dict[int, int]:
    """What each DEQUANTIZE reads, by its output."""
    return {int(op.outputs[0]): int(op.inputs[0]) for op, kind in _operators(parsed, graph) if kind == "DEQUANTIZE"}


def check_wiring(parsed: Any) -> None:
    """Refuses a quantized flatbuffer with an operator that mixes integers and numbers as no kernel of LiteRT does.

    A constant may have another type than what an operator computes with: weights are integers beside float activations.

    Args:
        parsed: the flatbuffer, as `inspect.parse` gives it.

    Raises:
        EdgeError: names the first such operator.
    """
    for graph in parsed.subgraphs:
        for op, kind in _operators(parsed, graph):
            if kind in (*_CONVERTS, *_CALLS) or kind.startswith(inspect.CUSTOM):
                continue
            read = [graph.tensors[i] for i in op.inputs if i >= 0 and _is_computed(parsed, graph.tensors[i])]
            made = [graph.tensors[i] for i in op.outputs]
            if _mixed(read, made):
                types = " and ".join(" ".join(_NAMES.get(t.type, "?") for t in tensors) for tensors in (read, made))
                raise EdgeError(
                    f"the {kind} that gives {made[0].name.decode(errors='replace')!r} would read and write {types}, which LiteRT can't "
                    "compute; leave it in float by a rule, or set backend 'converter'"
                )


_NAMES = names(schema.TensorType)


def _mixed(read: list[Any], made: list[Any]) -> bool:
    numbers = schema.TensorType.FLOAT32
    if any(holds_integers(t) for t in made):
        return any(t.type == numbers for t in read)
    return any(t.type == numbers for t in made) and any(holds_integers(t) for t in read)


def _is_computed(parsed: Any, tensor: Any) -> bool:
    data = parsed.buffers[tensor.buffer].data
    return (data is None or not len(data)) and not tensor.isVariable


def _operators(parsed: Any, graph: Any) -> Iterator[tuple[Any, str]]:
    for op in graph.operators or ():
        yield op, inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])

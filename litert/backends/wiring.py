"""Which of a tensor's two forms, integers or the numbers behind a DEQUANTIZE, an operator of a quantized flatbuffer reads.

Where a tensor is an output and is read as well, litert-quantizer gives integer kernels the numbers. LiteRT checks no types there: such
a kernel reads and writes beyond its memory, which ends the process or gives noise.
"""

from collections.abc import Iterator
from typing import Any

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError

_INTEGERS = {schema.TensorType.INT8, schema.TensorType.INT16, schema.TensorType.UINT8}
_CONVERTS = ("QUANTIZE", "DEQUANTIZE")
_CALLS = ("CALL", "IF", "WHILE")  # hand tensors of any type on


def mend_wiring(model: bytes) -> bytes:
    """Gives operators with integer outputs the integers, and a signature's outputs back to the graph.

    Args:
        model: as litert-quantizer writes it.

    Returns:
        The same bytes where nothing is to be mended.
    """
    parsed = inspect.parse(model)
    changed = False
    for graph in parsed.subgraphs:
        sources = {int(op.outputs[0]): int(op.inputs[0]) for op, kind in _operators(parsed, graph) if kind == "DEQUANTIZE"}
        for op, kind in _operators(parsed, graph):
            if kind in _CONVERTS or not (types := {graph.tensors[i].type for i in op.outputs if _holds_integers(graph.tensors[i])}):
                continue
            read = [source if graph.tensors[source := sources.get(int(i), int(i))].type in types else int(i) for i in op.inputs]
            changed |= read != [int(i) for i in op.inputs]
            op.inputs = read
    for signature in parsed.signatureDefs or ():
        graph = parsed.subgraphs[signature.subgraphIndex]
        sources = {int(op.outputs[0]): int(op.inputs[0]) for op, kind in _operators(parsed, graph) if kind == "DEQUANTIZE"}
        named = {int(output.tensorIndex) for output in signature.outputs}
        given = [source if int(i) not in named and (source := sources.get(int(i), int(i))) in named else int(i) for i in graph.outputs]
        changed |= given != [int(i) for i in graph.outputs]
        graph.outputs = given
    return bytes(flatbuffer_utils.convert_object_to_bytearray(parsed)) if changed else model


def check_wiring(model: bytes) -> None:
    """Refuses a quantized flatbuffer with an operator that mixes integers and numbers as no kernel of LiteRT does.

    A constant may have another type than what an operator computes with: weights are integers beside float activations.

    Raises:
        EdgeError: names the first such operator.
    """
    parsed = inspect.parse(model)
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


_NAMES = {code: name for name, code in vars(schema.TensorType).items() if isinstance(code, int)}


def _mixed(read: list[Any], made: list[Any]) -> bool:
    numbers = schema.TensorType.FLOAT32
    if any(_holds_integers(t) for t in made):
        return any(t.type == numbers for t in read)
    return any(t.type == numbers for t in made) and any(_holds_integers(t) for t in read)


def _holds_integers(tensor: Any) -> bool:
    """Whether it stands for real values by integers."""
    return tensor.type in _INTEGERS and tensor.quantization is not None and tensor.quantization.scale is not None


def _is_computed(parsed: Any, tensor: Any) -> bool:
    data = parsed.buffers[tensor.buffer].data
    return (data is None or not len(data)) and not tensor.isVariable


def _operators(parsed: Any, graph: Any) -> Iterator[tuple[Any, str]]:
    for op in graph.operators or ():
        yield op, inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])

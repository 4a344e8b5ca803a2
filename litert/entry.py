"""Where a flatbuffer is entered: one signature, the graph it runs, and what that graph means for whoever runs it.

All of it is read from the file alone, before LiteRT gets it: a signature of a graph that isn't there kills LiteRT.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert.calls import called_graphs
from tfx_edge.litert.inspect import CUSTOM, operator_name
from tfx_edge.schemas import EdgeError

SIGNATURE = "serving_default"

State = Literal["none", "reset", "reload"]


@dataclass(frozen=True)
class Entry:
    """One signature of a flatbuffer.

    Attributes:
        signature: its name.
        subgraph: index of the graph that it runs.
        inputs: index of the tensor in that graph, by input name.
        outputs: the same for the outputs.
        no_nan: the float inputs in which NaN is lost: they are quantized inside.
        state: what makes a prediction independent of those before it: nothing need be done; variable tensors, as recurrent layers
            have, must be reset; or the model must be loaded anew, since LiteRT resets no variable that an operator assigned.
    """

    signature: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]
    no_nan: frozenset[str]
    state: State


def find_entry(parsed: Any, signature: str | None, name: str) -> Entry:
    """Finds a signature and checks that it can be run.

    Args:
        parsed: the flatbuffer, as `inspect.parse` gives it.
        signature: its name; None for `serving_default`, or for the only one.
        name: what to call the model in an error.

    Raises:
        EdgeError: there is no such signature, it doesn't fit the graph that it names, or the graph has operators that LiteRT
            has not, that draw at random, or that write to a constant.
    """
    operators = [operator_name(code) for code in parsed.operatorCodes or ()]
    _refuse_custom(_kinds(parsed.subgraphs, operators), name)
    found = _choose(list(parsed.signatureDefs or ()), signature, name)
    key = _text(found.signatureKey)
    if not 0 <= found.subgraphIndex < len(parsed.subgraphs):
        raise EdgeError(
            f"{name}: signature {key!r} is of graph {found.subgraphIndex}, the file has {len(parsed.subgraphs)}; "
            "it is damaged, export it again"
        )
    graph = parsed.subgraphs[found.subgraphIndex]
    inputs = {_text(t.name): int(t.tensorIndex) for t in found.inputs or ()}
    outputs = {_text(t.name): int(t.tensorIndex) for t in found.outputs or ()}
    if set(inputs.values()) != _indices(graph.inputs) or not set(outputs.values()) <= _indices(graph.outputs):
        raise EdgeError(f"{name}: the inputs and outputs of signature {key!r} aren't those of its graph; it is damaged, export it again")
    if not inputs or not outputs:
        raise EdgeError(f"{name}: signature {key!r} has {len(inputs)} inputs and {len(outputs)} outputs; export a function of examples")
    run = _reachable(parsed, operators, int(found.subgraphIndex))
    _refuse_random(_kinds(run, operators), name)
    _refuse_overwritten(parsed, name)
    return Entry(
        signature=key,
        subgraph=int(found.subgraphIndex),
        inputs=inputs,
        outputs=outputs,
        no_nan=frozenset(n for n, index in inputs.items() if _is_quantized_inside(graph, operators, index)),
        state=_state(parsed, graph, run, operators),
    )


def _kinds(graphs: Iterable[Any], operators: list[str]) -> set[str]:
    return {operators[op.opcodeIndex] for graph in graphs for op in graph.operators or ()}


def _refuse_custom(kinds: set[str], name: str) -> None:
    custom = sorted(op for op in kinds if op.startswith(CUSTOM))
    if custom:  # older TensorFlow, once in the process, lends LiteRT its operators: a model would run here and on no device
        raise EdgeError(f"{name}: needs {', '.join(custom)}, which LiteRT has not; replace the layer that uses it")


def _refuse_random(kinds: set[str], name: str) -> None:
    random = sorted(kinds & {"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"})
    if random:
        raise EdgeError(f"{name}: {', '.join(random)} draws at random, so no two predictions are alike; export the model for inference")


def _refuse_overwritten(parsed: Any, name: str) -> None:
    """LiteRT lets an operator write where a constant lies; what comes of it changes from run to run, up to its death."""
    for graph in parsed.subgraphs:
        for index in (index for op in graph.operators or () for index in op.outputs):
            if not 0 <= index < len(graph.tensors) or not 0 <= graph.tensors[index].buffer < len(parsed.buffers):
                continue  # which LiteRT refuses
            tensor = graph.tensors[index]
            data = parsed.buffers[tensor.buffer].data
            if data is not None and len(data):
                raise EdgeError(f"{name}: an operator writes to the constant {_text(tensor.name)!r}; it is damaged, export it again")


def _choose(signatures: list[Any], wanted: str | None, name: str) -> Any:
    keys = [_text(s.signatureKey) for s in signatures]
    if wanted is None and len(keys) == 1:
        return signatures[0]
    key = SIGNATURE if wanted is None else wanted
    if keys.count(key) == 1:
        return signatures[keys.index(key)]
    there = ", ".join(map(repr, sorted(keys))) or "none"
    if wanted is None:
        raise EdgeError(f"{name}: has signatures {there}; expected {SIGNATURE!r} or a single one, or name one of these")
    raise EdgeError(f"{name}: no signature {wanted!r}, it has {there}; name one of these")


# Operators behind which NaN is still NaN: those that move values, and plain arithmetic.
_PASS_NAN = {"CONCATENATION", "EXPAND_DIMS", "PACK", "PAD", "PADV2", "RESHAPE", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE"}
_PASS_NAN |= {"TRANSPOSE", "UNPACK", "ADD", "DIV", "MUL", "SUB"}
# Operators that, given integer weights, quantize their first input themselves, row by row.
_HYBRID = {"BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LSTM", "RNN", "SVDF"}
_HYBRID |= {f"{way}DIRECTIONAL_SEQUENCE_{cell}" for way in ("BI", "UNI") for cell in ("LSTM", "RNN")}


def _is_quantized_inside(graph: Any, operators: list[str], tensor: int) -> bool:
    """Whether NaN in a float input would be rounded to an integer; LiteRT says nothing then, and predicts."""
    reached, seen = [tensor], set()
    while reached:
        index = reached.pop()
        if index in seen or graph.tensors[index].type not in _FLOATS:
            continue
        seen.add(index)
        for op in graph.operators or ():
            if index not in _indices(op.inputs):
                continue
            kind = operators[op.opcodeIndex]
            if kind == "QUANTIZE":
                return True
            if kind in _HYBRID and op.inputs[0] == index and any(i >= 0 and graph.tensors[i].type in _WEIGHTS for i in op.inputs[1:]):
                return True
            if kind in _PASS_NAN:
                reached += _indices(op.outputs)
    return False


_FLOATS = {schema.TensorType.FLOAT16, schema.TensorType.FLOAT32}
_WEIGHTS = {schema.TensorType.INT2, schema.TensorType.INT4, schema.TensorType.INT8, schema.TensorType.UINT8}


def _state(parsed: Any, graph: Any, run: list[Any], operators: list[str]) -> State:
    if "ASSIGN_VARIABLE" in _kinds(run, operators):
        return "reload"
    if not any(_has_variables(g) for g in run):
        return "none"
    # LiteRT resets the variable tensors of all graphs, and fails where one of them has no memory yet.
    return "reload" if any(_has_variables(g) for g in parsed.subgraphs if g is not graph) else "reset"


def _has_variables(graph: Any) -> bool:
    return any(t.isVariable for t in graph.tensors or ())


def _reachable(parsed: Any, operators: list[str], subgraph: int) -> list[Any]:
    """The graphs that running one runs, loop bodies and branches; without those that run once, which set the variables up."""
    pending, seen = [subgraph], set()
    while pending:
        index = pending.pop()
        if index not in seen and 0 <= index < len(parsed.subgraphs):
            seen.add(index)
            for op in parsed.subgraphs[index].operators or ():
                if operators[op.opcodeIndex] != "CALL_ONCE":
                    pending += called_graphs(op)
    return [parsed.subgraphs[i] for i in sorted(seen)]


def _indices(tensors: Any) -> set[int]:
    return set() if tensors is None else {int(i) for i in tensors}


def _text(name: bytes | None) -> str:
    return (name or b"").decode(errors="replace")

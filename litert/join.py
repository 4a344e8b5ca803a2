"""Two flatbuffers in one: what the first gives is what the second takes.

    joined = join(preprocessing, model)

The second stays as it is, tensor for tensor and name for name, so whatever was said of it by its names, a plan or ranges, holds of
the joined one. Nothing is run or computed here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect, schema_names
from tfx_edge.litert.assembly import Assembly
from tfx_edge.litert.entry import Entry, find_entry
from tfx_edge.litert.fields import holds_integers, shape, some
from tfx_edge.schemas import EdgeError

_PREFIX = b"preprocessing/"  # of the first one's tensors, whose names the second may have too
_STATE = {"ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "READ_VARIABLE", "VAR_HANDLE"}


def join(first: bytes, second: bytes, *, names: tuple[str, str] = ("the preprocessing", "the model")) -> bytes:
    """Puts a flatbuffer in front of another.

    Outputs of the first feed the inputs of the same signature name of the second; through a QUANTIZE operator where an input is
    quantized. Outputs that the second doesn't take are dropped, with the operators and inputs that only they need.

    Args:
        first: float32, without state; its signature is `serving_default` or its only one.
        second: any flatbuffer with one signature.
        names: what to call the two in an error.

    Returns:
        A flatbuffer whose one signature, `serving_default`, has what remains of the first one's inputs and the second one's outputs.
        Its metadata is the second one's, with the newer of both minimum runtimes. The same two give the same bytes.

    Raises:
        EdgeError: one isn't a flatbuffer or is damaged, the second takes what the first doesn't give or gives in another shape or
            type, the first keeps state, or the second has several signatures.
    """
    front, back = inspect.parse(first), inspect.parse(second)
    try:
        return _join(front, back, names)
    except (AttributeError, IndexError, KeyError, TypeError) as error:  # a damaged file's indices lead nowhere
        raise EdgeError(f"{names[0]} and {names[1]} can't be joined: one of them is damaged ({error}); export it again") from error


def _join(front: Any, back: Any, names: tuple[str, str]) -> bytes:
    signatures = sorted(s.signatureKey.decode() for s in some(back.signatureDefs))
    if len(signatures) > 1:
        raise EdgeError(f"{names[1]}: has the signatures {', '.join(signatures)}; preprocessing goes before one alone, export one")
    giving, taking = find_entry(front, None, names[0]), find_entry(back, None, names[1])
    given, taken = front.subgraphs[giving.subgraph], back.subgraphs[taking.subgraph]
    for name, index in taking.inputs.items():
        _check(name, taken.tensors[index], giving, given, names)
    wanted = {name: giving.outputs[name] for name in taking.inputs}
    operators = _leading_to(given, set(wanted.values()))
    _refuse_state(front, given, operators, names[0])
    used = {int(i) for op in operators for i in (*op.inputs, *op.outputs, *some(op.intermediates))} | set(wanted.values())
    inputs = {name: index for name, index in giving.inputs.items() if index in used}

    assembly = Assembly(front, giving.subgraph, back, taking.subgraph)
    main = schema.SubGraphT()
    main.name, main.tensors = b"main", []
    ours = _place(main, given, sorted(used - {-1}), _PREFIX)
    main.operators = [_moved(op, ours) for op in operators]
    for op in main.operators:
        op.debugMetadataIndex = -1  # which counts in the first one's metadata
    fed = {}
    for name, index in taking.inputs.items():
        fed[index] = ours[wanted[name]]
        tensor = taken.tensors[index]
        if holds_integers(tensor):
            quantized = _place(main, taken, [index])[index]
            main.operators.append(assembly.quantize(fed[index], quantized, tensor.type))
            fed[index] = quantized
    theirs = fed | _place(main, taken, [i for i in range(len(taken.tensors)) if i not in fed])
    main.operators += [_moved(op, theirs) for op in some(taken.operators)]
    main.inputs = [ours[int(i)] for i in given.inputs if int(i) in inputs.values()]
    main.outputs = [theirs[int(i)] for i in taken.outputs]
    return assembly.finish(
        main,
        inputs={name: ours[index] for name, index in inputs.items()},
        outputs={name: theirs[index] for name, index in taking.outputs.items()},
    )


def _check(name: str, tensor: Any, giving: Entry, given: Any, names: tuple[str, str]) -> None:
    """Refuses an input of the second that the first doesn't give, or gives otherwise."""
    takes = f"{names[1]} takes {name!r} as {_described(tensor)}, {names[0]} gives"
    if name not in giving.outputs:
        raise EdgeError(f"{takes} {', '.join(map(repr, sorted(giving.outputs)))}; give it an output of this name")
    output = given.tensors[giving.outputs[name]]
    real = schema.TensorType.FLOAT32 if holds_integers(tensor) else tensor.type
    if output.type != real or holds_integers(output) or not _fits(shape(output), shape(tensor)):
        raise EdgeError(f"{takes} {_described(output)}; give it the same shape and type, float32 for a quantized input")


def _fits(have: Sequence[int], want: Sequence[int]) -> bool:
    """Any size goes where any is wanted; a fixed batch must be one on both sides, as it couldn't be seen from the inputs else."""
    if len(have) != len(want) or (have and have[0] < 0 <= want[0]):
        return False
    return all(h == w or h < 0 or w < 0 for h, w in zip(have, want, strict=True))


def _described(tensor: Any) -> str:
    kind = schema_names.names(schema.TensorType)[tensor.type].lower()
    return f"{kind} [{', '.join('?' if size < 0 else str(size) for size in shape(tensor))}]"


def _leading_to(graph: Any, tensors: set[int]) -> list[Any]:
    """The operators that some tensors need, in the graph's order, in which each stands behind those that it needs."""
    needed, kept = set(tensors), []
    for op in reversed(list(some(graph.operators))):
        if needed & set(map(int, op.outputs)):
            kept.append(op)
            needed |= set(map(int, op.inputs))
    return kept[::-1]


def _refuse_state(parsed: Any, graph: Any, operators: Sequence[Any], name: str) -> None:
    kinds = {inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) for op in operators}
    variables = {graph.tensors[i].name.decode() for op in operators for i in op.inputs if i >= 0 and graph.tensors[i].isVariable}
    if state := sorted(kinds & _STATE | variables):
        raise EdgeError(f"{name}: {', '.join(state)} keeps something from one example to the next; compute each from itself alone")


def _place(graph: Any, source: Any, indices: Sequence[int], prefix: bytes = b"") -> dict[int, int]:
    """Appends tensors to a graph; returns where each is now. -1, an input that is left out, stays what it is."""
    places = {-1: -1}
    for index in indices:
        places[index] = len(graph.tensors)
        source.tensors[index].name = prefix + (source.tensors[index].name or b"")
        graph.tensors.append(source.tensors[index])
    return places


def _moved(op: Any, places: Mapping[int, int]) -> Any:
    """An operator on the same tensors in their new places."""
    for field in ("inputs", "outputs", "intermediates"):
        if getattr(op, field) is not None:
            setattr(op, field, [places[int(i)] for i in getattr(op, field)])
    return op

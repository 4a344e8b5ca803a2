"""Which operators LiteRT hands to XNNPACK, its fast kernels for phones, gateways and PCs; the others run in LiteRT's own, slower ones.

LiteRT puts DELEGATE nodes in the place of what XNNPACK takes, and lists them behind the model's operators, which stay in the list. Such
a node names the tensors that it reads from outside, constants too, and those that it makes; the operators between them are what it took.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from tfx_edge.litert import inspect
from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.schema_names import names
from tfx_edge.litert.targets.outcome import Outcome, group
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.target import OpPlacement

_DELEGATE = "DELEGATE"
_DTYPES = {code: name.lower() for code, name in names(schema.TensorType).items()}


def xnnpack_share(model: bytes, *, time_limit_s: float = 120.0) -> Outcome:
    """Asks LiteRT, in a process of its own, which operators of the model's main graph XNNPACK takes.

    Args:
        model: a flatbuffer.
        time_limit_s: seconds for the process.

    Returns:
        `xnnpack_share` of the operators, 0 to 1; where each runs, XNNPACK or LiteRT, and what types the latter have. LiteRT doesn't tell
        why XNNPACK leaves an operator.

    Raises:
        EdgeError: not a flatbuffer, or LiteRT can't load it.
    """
    parsed = inspect.parse(model)
    taken = call_in_child(_taken, model, time_limit_s=time_limit_s)
    main = parsed.subgraphs[0]
    ops = []
    for index, (_, op, name, output) in enumerate(entry for entry in inspect.named_operators(parsed) if entry[0] is main):
        fast = index in taken
        reason = "" if fast else f"not taken with inputs {_inputs(parsed, main, op)}"
        ops.append(OpPlacement(operator=name, count=1, runs_on="XNNPACK" if fast else "LiteRT", reason=reason, output=output))
    share = {"xnnpack_share": len(taken) / len(ops)} if ops else {}
    return Outcome(f"XNNPACK in {inspect.runtime()}", share, group(ops))


def delegated(nodes: Sequence[Mapping[str, Any]]) -> set[int]:
    """The operators that DELEGATE nodes took.

    Args:
        nodes: as `Interpreter._get_ops_details` lists them, once memory is laid out.

    Returns:
        Indices in the graph's operators.
    """
    maker = {int(tensor): node for node in nodes if node["op_name"] != _DELEGATE for tensor in node["outputs"]}
    taken: set[int] = set()
    for node in (node for node in nodes if node["op_name"] == _DELEGATE):
        outside = {int(tensor) for tensor in node["inputs"]}
        pending = [int(tensor) for tensor in node["outputs"]]
        while pending:
            made_by = maker.get(pending.pop())
            if made_by is not None and made_by["index"] not in taken:
                taken.add(made_by["index"])
                pending += {int(tensor) for tensor in made_by["inputs"]} - outside
    return taken


def _taken(note: Note, model: bytes) -> set[int]:
    note("XNNPACK: loading the model")
    try:
        interpreter = Interpreter(model_content=model)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise EdgeError(f"XNNPACK: LiteRT can't load the model: {' '.join(str(error).split())}") from error
    return delegated(interpreter._get_ops_details())


def _inputs(parsed: Any, graph: Any, op: Any) -> str:
    """Their types, and which are constants: what XNNPACK mostly decides by."""
    tensors = [graph.tensors[index] for index in (() if op.inputs is None else op.inputs) if index >= 0]
    described = (_DTYPES[t.type] + " constant" * (parsed.buffers[t.buffer].data is not None) for t in tensors)
    return ", ".join(described) or "none"

"""A model against the rules of a device that no tool here can stand in for: operators, types and shapes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.schema_names import names
from tfx_edge.litert.targets.outcome import Outcome, group
from tfx_edge.schemas.target import OpPlacement, OpRule, OpRules, TargetProfile

_DTYPES = {code: name.lower() for code, name in names(schema.TensorType).items()}
_AXIS_INPUT = {"MEAN": 1, "SUM": 1, "REDUCE_MAX": 1, "REDUCE_MIN": 1, "REDUCE_PROD": 1, "SPLIT": 0}


def judge(model: bytes, profile: TargetProfile) -> Outcome:
    """Applies a profile's rules to the operators of the main graph, in the order in which they run.

    Returns:
        `npu_share` of the operators, and `unsupported_ops`, the number of those that break a rule themselves.

    Raises:
        EdgeError: not a flatbuffer.
    """
    rules = profile.rules
    assert rules is not None  # noqa: S101 - the profile's own check
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[0]
    placements, broken, stopped = [], 0, ""
    for op in graph.operators or ():
        name = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
        where, reason = rules.device, ""
        if rules.converts_ends and _converts_end(name, op, graph):
            where, reason = "CPU", "converts between float and quantized at the model's edge"
        elif stopped:
            where, reason = "CPU", f"comes after {stopped}, the first that the {rules.device} can't take"
        else:
            reason = next(_breaches(name, op, graph, parsed.buffers, rules), "")
            if reason:
                where, broken = "CPU", broken + 1
                stopped = name if rules.stops_at_first else ""
        output = graph.tensors[op.outputs[0]].name.decode()
        placements.append(OpPlacement(operator=name, count=1, runs_on=where, reason=reason, output=output))
    on_device = sum(p.runs_on == rules.device for p in placements)
    share = on_device / len(placements) if placements else 0.0
    reasons = tuple(_dynamic(graph)) if rules.static_shapes else ()
    return Outcome(f"rules of {profile.name}", {"unsupported_ops": float(broken), "npu_share": share}, group(placements), reasons)


def _breaches(name: str, op: Any, graph: Any, buffers: Any, rules: OpRules) -> Iterator[str]:
    rule = rules.ops.get(name)
    if rule is None:
        yield f"the {rules.device} has no such operator" + (
            ", it computes with an open batch; export with a fixed one" if name == "SHAPE" else ""
        )
        return
    for tensor in (graph.tensors[i] for i in (*_indices(op.inputs), *op.outputs)):
        if _is_constant(tensor, buffers):
            continue
        dtype = _DTYPES[tensor.type]
        if dtype not in (*rules.dtypes, *rule.dtypes):
            yield f"{dtype} values; the {rules.device} takes {', '.join((*rules.dtypes, *rule.dtypes))} here"
        shape = _shape(tensor)
        if rules.max_rank is not None and len(shape) > rules.max_rank:
            yield f"a tensor of {len(shape)} dimensions; the {rules.device} takes {rules.max_rank}"
        if rules.max_wide_rank is not None and any(size > 1 for size in shape[: -rules.max_wide_rank]):
            yield f"a tensor of shape {shape}; only the innermost {rules.max_wide_rank} dimensions may be greater than 1"
    yield from _option_breaches(op, rule)
    yield from _input_breaches(op, graph, buffers, rule)
    if rule.keeps_batch and _touches_batch(name, op, graph, buffers):
        yield "works along the batch, dimension 0"
    output = _shape(graph.tensors[op.outputs[0]])
    if rule.vector and sum(size > 1 for size in output) > 1:
        yield f"an output of shape {output}; only one dimension may be greater than 1"
    if rule.max_elements is not None and int(np.prod(output)) > rule.max_elements:
        yield f"an output of {int(np.prod(output))} values; {rule.max_elements} are the most"


def _option_breaches(op: Any, rule: OpRule) -> Iterator[str]:
    for option, allowed in rule.options.items():
        value = getattr(op.builtinOptions, option, None)
        if value is not None and float(value) not in allowed:
            yield f"{option} {value}; only {', '.join(f'{a:g}' for a in allowed)} works"
    if rule.same_dilation:
        width, height = (getattr(op.builtinOptions, f"dilation{side}Factor", 1) for side in "WH")
        if width != height:
            yield f"dilation {height} by {width}; it must be the same in both directions"


def _input_breaches(op: Any, graph: Any, buffers: Any, rule: OpRule) -> Iterator[str]:
    inputs = [graph.tensors[i] for i in _indices(op.inputs)]
    if rule.ranks and inputs and len(_shape(inputs[0])) not in rule.ranks:
        yield f"an input of {len(_shape(inputs[0]))} dimensions; it takes {' or '.join(map(str, rule.ranks))}"
    if rule.max_inputs is not None and len(inputs) > rule.max_inputs:
        yield f"{len(inputs)} inputs; {rule.max_inputs} are the most"
    for place in rule.constant_inputs:
        if place < len(inputs) and not _is_constant(inputs[place], buffers):
            yield f"input {place} is computed; its values must be in the file"
    if rule.unit_strides and len(inputs) > 3:
        strides = _constant(inputs[3], buffers)
        if strides is not None and (strides != 1).any():
            yield f"strides {strides.tolist()}; they must be 1"


def _touches_batch(name: str, op: Any, graph: Any, buffers: Any) -> bool:
    if name == "PACK":
        return bool(op.builtinOptions.axis == 0)
    if name == "PAD":
        padding = _constant(graph.tensors[op.inputs[1]], buffers)
        return padding is not None and bool(padding[:2].any())
    axis = graph.tensors[op.inputs[_AXIS_INPUT[name]]]
    axes = _constant(axis, buffers)
    rank = len(_shape(graph.tensors[op.inputs[1 - _AXIS_INPUT[name]]]))
    return axes is not None and bool((axes % max(rank, 1) == 0).any())


def _constant(tensor: Any, buffers: Any) -> Any:
    """The values of an int32 or int64 constant, flat; None where it is computed."""
    dtype = {"int32": np.int32, "int64": np.int64}.get(_DTYPES[tensor.type])
    return np.frombuffer(bytes(buffers[tensor.buffer].data), dtype) if dtype and _is_constant(tensor, buffers) else None


def _is_constant(tensor: Any, buffers: Any) -> bool:
    data = buffers[tensor.buffer].data
    return data is not None and len(data) > 0


def _indices(tensors: Any) -> list[int]:
    """Without those that an operator leaves out."""
    return [] if tensors is None else [int(i) for i in tensors if i >= 0]


def _converts_end(name: str, op: Any, graph: Any) -> bool:
    if name == "QUANTIZE":
        return op.inputs[0] in graph.inputs and _DTYPES[graph.tensors[op.inputs[0]].type] == "float32"
    return name == "DEQUANTIZE" and op.outputs[0] in graph.outputs


def _dynamic(graph: Any) -> Iterator[str]:
    for index in graph.inputs:
        signature = graph.tensors[index].shapeSignature
        if signature is not None and -1 in list(signature):
            yield (
                f"input {graph.tensors[index].name.decode()!r} has the open shape {[int(d) for d in signature]}; "
                "export the model with a fixed batch, every size must be in the file"
            )


def _shape(tensor: Any) -> tuple[int, ...]:
    return () if tensor.shape is None else tuple(int(d) for d in tensor.shape)

"""What a quantized flatbuffer still computes in float, and why."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError, FloatOp, QuantizationPlan
from tfx_edge.schemas.schemes import COMPUTED_IN_FLOAT, scheme_of

_FLOATS = {schema.TensorType.FLOAT16: "float16", schema.TensorType.FLOAT32: "float32", schema.TensorType.FLOAT64: "float64"}
_INTEGER_WEIGHTS = (schema.TensorType.INT4, schema.TensorType.INT8)
_FORMS = {"dynamic_range": "form with int8 weights", "int4_dynamic_range": "form with int8 or 4-bit weights"}


def float_ops(model: bytes, plan: QuantizationPlan) -> Iterator[FloatOp]:
    """The operators of a flatbuffer that compute in float, in its order. Conversions between float and integers don't count.

    Args:
        model: the quantized flatbuffer.
        plan: which made it.
    """
    reason = _reasons(plan)
    for graph, op, kind, output in inspect.named_operators(inspect.parse(model)):
        inputs = [graph.tensors[i] for i in op.inputs if i >= 0]
        floats = any(t.type == schema.TensorType.FLOAT32 for t in (*inputs, *(graph.tensors[i] for i in op.outputs)))
        integer_weights = any(t.type in _INTEGER_WEIGHTS for t in inputs)
        if floats and not integer_weights and kind not in ("QUANTIZE", "DEQUANTIZE"):
            yield FloatOp(op=kind, tensor=output, reason=reason(kind, output))


def check_integer_only(model: bytes, ops: Sequence[FloatOp]) -> None:
    """Refuses a flatbuffer with a float tensor.

    Args:
        model: the quantized flatbuffer.
        ops: what `float_ops` gives of it.

    Raises:
        EdgeError: names the operators that stay float, and the first such tensor.
    """
    tensor = next((t for t in _used_tensors(model) if t.type in _FLOATS), None)
    if tensor is None:
        return
    named = ", ".join(f"{op.op} {op.tensor!r} ({op.reason})" for op in ops[:3]) or "no operator of its own"
    more = f" and {len(ops) - 3} more" if len(ops) > 3 else ""
    raise EdgeError(
        f"integer_only, but {named}{more} stays float, and so does tensor {tensor.name.decode()!r} ({_FLOATS[tensor.type]}); replace the "
        "layer, take out rules that leave it in float, try backend 'converter', or set integer_only to false"
    )


def _used_tensors(model: bytes) -> Iterator[Any]:
    """Without those that hold nothing and only name the scales inside an LSTM."""
    parsed = inspect.parse(model)
    for graph in parsed.subgraphs:
        ends = [*graph.inputs, *graph.outputs]
        yield from (graph.tensors[i] for i in (*ends, *(i for op in graph.operators or () for i in (*op.inputs, *op.outputs))) if i >= 0)


def size_reason(float_model: bytes, model: bytes, plan: QuantizationPlan) -> str | None:
    """Why a quantized flatbuffer isn't smaller than the float one, in a sentence; None if it is, or nothing was to be quantized."""
    if (plan.backend == "litert" and plan.method == "ptq" and not plan.recipe) or len(model) < len(float_model):
        return None
    parsed = inspect.parse(model)
    constants = [(t.type, len(parsed.buffers[t.buffer].data)) for g in parsed.subgraphs for t in g.tensors if _holds(parsed, t)]
    floats = sum(size for kind, size in constants if kind == schema.TensorType.FLOAT32)
    before = inspect.parse(float_model)
    weights = sum(
        len(before.buffers[t.buffer].data)
        for g in before.subgraphs
        for t in g.tensors
        if t.type == schema.TensorType.FLOAT32 and _holds(before, t)
    )
    kept = f"{floats} of {weights} bytes of weights stay float32 (float_ops says of which operators)"
    few = f"its weights ({weights} bytes) are too few to outweigh the scales and conversions that quantization adds"
    why = kept if 2 * floats > weights else few
    return f"scheme {plan.config.scheme!r} gives {len(model)} bytes, the float model has {len(float_model)}: {why}"


def _holds(parsed: Any, tensor: Any) -> bool:
    return parsed.buffers[tensor.buffer].data is not None


def _reasons(plan: QuantizationPlan) -> Callable[[str, str], str]:
    """Why an operator of some name and first output is float."""
    if plan.method == "qat":
        return lambda _kind, _output: "the model doesn't emulate int8 here; qat.json beside it says why of each layer"
    if plan.backend == "converter":
        return lambda kind, _output: f"TFLiteConverter has no {plan.config.scheme} form of {kind}, or left it float"
    if not plan.recipe:
        return lambda _kind, _output: f"scheme {plan.config.scheme!r} computes in float"
    from litert_quantizer import algorithm_manager, qtyping, recipe_manager  # half a second, and not part of the light base

    manager = recipe_manager.RecipeManager()
    manager.load_quantization_recipe(list(plan.recipe))
    known = {op.value for op in qtyping.TFLOperationName}

    def reason(kind: str, output: str) -> str:
        scheme = scheme_of(plan.config.scheme, plan.config.rules, kind, output)
        if scheme in COMPUTED_IN_FLOAT:
            return f"scheme {scheme!r} computes in float"
        none = algorithm_manager.AlgorithmName.NO_QUANTIZE
        if kind not in known or manager.get_quantization_configs(qtyping.TFLOperationName(kind), f"{output};")[0] == none:
            return f"litert-quantizer has no {_FORMS.get(scheme, f'{scheme} form')} of {kind}"
        return "litert-quantizer left it float: none of its tensors qualifies"

    return reason

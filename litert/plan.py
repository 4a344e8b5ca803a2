"""From a float flatbuffer, a config and calibrated ranges to a plan, and from the plan to the quantized flatbuffer.

    plan = make_plan(float_model, QuantizationConfig(scheme="int8"), ranges, calibration_digest)
    quantized = apply_plan(float_model, plan, ranges)

A plan is plain data that a person can read and edit. Applying it needs no data and gives the same bytes wherever it is done.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing  # litert-quantizer uses it without importing it, which fails on NumPy 1
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.finish import finish
from tfx_edge.litert.ranges import activations
from tfx_edge.litert.recipes import recipe
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.weights import check_weights, sharing_operators
from tfx_edge.schemas import EdgeError, FloatOp, QuantizationConfig, QuantizationPlan, TensorRange, TensorRanges
from tfx_edge.schemas.schemes import COMPUTED_IN_FLOAT


def make_plan(
    float_model: bytes, config: QuantizationConfig, ranges: TensorRanges | None = None, calibration_digest: str | None = None
) -> QuantizationPlan:
    """Plans the quantization of a model, and tries it, so that the plan tells which operators stay float.

    Args:
        float_model: a float flatbuffer, as `litert.convert` gives it.
        config: the scheme and the types of inputs and outputs.
        ranges: of every float activation; scheme `int8` needs them, no other reads them.
        calibration_digest: of the data that the ranges come from.

    Raises:
        EdgeError: a rule is about no operator of the model; and as `apply_plan` does.
    """
    _check_rules(float_model, config)
    plan = QuantizationPlan(
        config=config,
        recipe=recipe(config, sharing_operators(float_model)),
        float_ops=(),
        float_model_digest=inspect.digest(float_model),
        calibration_digest=calibration_digest if config.needs_calibration else None,
    )
    quantized = apply_plan(float_model, plan, ranges)
    return plan.model_copy(update={"float_ops": tuple(_float_ops(quantized, plan))})


def make_trained_plan(float_model: bytes, quantized: bytes, config: QuantizationConfig) -> QuantizationPlan:
    """The plan of a model that quantization-aware training made: TFLiteConverter carries it out, the model itself says how.

    Args:
        float_model: the flatbuffer that `litert.convert` makes of the model in float.
        quantized: the one that it makes with `quantized_io`.
        config: with `qat`.

    Raises:
        EdgeError: LiteRT can't load the quantized flatbuffer.
    """
    check_weights(float_model, config.scheme)
    Runner(quantized, name="the model after quantization-aware training")
    plan = QuantizationPlan(config=config, method="qat", recipe=(), float_ops=(), float_model_digest=inspect.digest(float_model))
    return plan.model_copy(update={"float_ops": tuple(_float_ops(quantized, plan))})


def _check_rules(float_model: bytes, config: QuantizationConfig) -> None:
    if not config.rules:
        return
    parsed = inspect.parse(float_model)
    there = [
        (inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]), graph.tensors[op.outputs[0]].name.decode())
        for graph in parsed.subgraphs
        for op in graph.operators or ()
    ]
    for rule in config.rules:
        if not any(rule.names(*op) for op in there):
            raise EdgeError(
                f"the rule operator {rule.operator!r}, tensor {rule.tensor!r} is about no operator of the model, which has "
                f"{', '.join(sorted({kind for kind, _ in there}))}; name one of these, or leave the rule out"
            )


def check_fits(float_model: bytes, plan: QuantizationPlan) -> None:
    """Checks that a plan was made for a float flatbuffer.

    Raises:
        EdgeError: it is for another; the text has both digests.
    """
    have = inspect.digest(float_model)
    if plan.float_model_digest != have:
        raise EdgeError(
            f"the quantization plan was made for the float flatbuffer {plan.float_model_digest[:12]}, this is {have[:12]}; "
            "run Quantizer on this model"
        )


def apply_plan(float_model: bytes, plan: QuantizationPlan, ranges: TensorRanges | None = None) -> bytes:
    """Quantizes a model as a plan of method `ptq` says.

    Args:
        float_model: the float flatbuffer that the plan was made for.
        plan: what `make_plan` gave.
        ranges: those that the plan was made with; scheme `int8` needs them.

    Returns:
        The flatbuffer, checked to load in LiteRT; `float_model` itself for a plan without a recipe.

    Raises:
        EdgeError: the plan is for another model; scheme `int8` without calibrated ranges, or without one of a tensor; a weight
            is NaN or doesn't fit the scheme; litert-quantizer can't do what the recipe asks, or LiteRT can't load what comes of it.
    """
    check_fits(float_model, plan)
    if plan.method == "qat":
        raise EdgeError("a plan of method 'qat' is carried out by litert.convert with quantized_io, from the model that the training made")
    check_weights(float_model, plan.config.scheme)
    if not plan.recipe:
        return float_model
    statistics = _statistics(float_model, ranges) if plan.config.needs_calibration else None
    quantized = finish(_quantize(float_model, list(plan.recipe), statistics))
    _check_loads(quantized, plan.config.scheme, ranges)
    return quantized


def _check_loads(quantized: bytes, scheme: str, ranges: TensorRanges | None) -> None:
    try:
        Runner(quantized, name=f"scheme {scheme!r}")
    except EdgeError as error:
        if not ranges or not ranges.ranges:
            raise
        width = {name: r.max - r.min for name, r in ranges.ranges.items()}
        narrow, wide = min(width, key=width.__getitem__), max(width, key=width.__getitem__)
        raise EdgeError(
            f"{error}; its ranges go from {width[narrow]:g} (tensor {narrow!r}) to {width[wide]:g} ({wide!r}), "
            "which may be too far apart: scale the features in Transform"
        ) from error


def _statistics(float_model: bytes, ranges: TensorRanges | None) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """Ranges as litert-quantizer takes them: arrays of one element, with the dimensions of the tensor."""
    if ranges is None or ranges.examples == 0:
        raise EdgeError("scheme 'int8' or 'int16x8' without calibrated ranges; give Quantizer calibration_data")
    parsed = inspect.parse(float_model)
    if len(parsed.subgraphs) > 1:
        raise EdgeError(
            "scheme 'int8' for a model with control flow (IF, WHILE): ranges inside its branches can't be calibrated; "
            "use 'dynamic_range' or unroll the layer"
        )
    tensors = activations(float_model)
    missing = [name for name in tensors if name not in ranges.ranges]
    if missing:
        raise EdgeError(
            f"the ranges have none for tensor {missing[0]!r} ({len(missing)} missing in all); run Quantizer on this model again"
        )
    usable = _without_zero_ranges(parsed.subgraphs[0], ranges)
    statistics = {}
    for name, index in tensors.items():
        shape = parsed.subgraphs[0].tensors[index].shape
        one = (1,) * (0 if shape is None else len(shape))
        statistics[name] = {"min": np.full(one, usable[name].min, np.float32), "max": np.full(one, usable[name].max, np.float32)}
    return statistics


def _without_zero_ranges(graph: Any, ranges: TensorRanges) -> dict[str, TensorRange]:
    """Gives a tensor that was 0 on all calibration data (a dead layer, an unused feature) the range of what it is computed from.

    A range of no width would give a scale so small that XNNPACK refuses the whole model.
    """
    usable = {name: r for name, r in ranges.ranges.items() if r.min != 0 or r.max != 0}
    names = [tensor.name.decode() for tensor in graph.tensors]
    for op in graph.operators:
        source = next((usable[names[i]] for i in op.inputs if i >= 0 and names[i] in usable), TensorRange(min=0, max=1))
        for index in op.outputs:
            usable.setdefault(names[index], source)
    return {name: usable.get(name, TensorRange(min=0, max=1)) for name in ranges.ranges}


def _quantize(float_model: bytes, steps: list[dict[str, Any]], statistics: dict[str, Any] | None) -> bytes:
    from litert_quantizer import quantizer  # half a second, and not part of the light base

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it opens an interpreter that keeps all tensors, and LiteRT warns of the memory
            result = quantizer.Quantizer(float_model, steps).quantize(statistics, enable_progress_bar=False, enable_progress_report=False)
    except (ArithmeticError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise EdgeError(f"litert-quantizer can't quantize the model: {' '.join(str(error).split()) or type(error).__name__}") from error
    return bytes(result.quantized_model)


def _float_ops(model: bytes, plan: QuantizationPlan) -> Iterator[FloatOp]:
    """The operators of a flatbuffer that compute in float, in its order. Conversions between float and integers don't count."""
    parsed = inspect.parse(model)
    for graph in parsed.subgraphs:
        for op in graph.operators or ():
            name = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
            inputs = [graph.tensors[i] for i in op.inputs if i >= 0]
            outputs = [graph.tensors[i] for i in op.outputs]
            floats = any(t.type == schema.TensorType.FLOAT32 for t in (*inputs, *outputs))
            integer_weights = any(t.type == schema.TensorType.INT8 for t in inputs)
            if floats and not integer_weights and name not in ("QUANTIZE", "DEQUANTIZE"):
                yield FloatOp(op=name, tensor=outputs[0].name.decode(), reason=_reason(name, outputs[0].name.decode(), plan))


def _reason(name: str, tensor: str, plan: QuantizationPlan) -> str:
    if plan.method == "qat":
        return "the model doesn't emulate int8 here; qat.json beside it says why of each layer"
    scheme = next((rule.scheme for rule in reversed(plan.config.rules) if rule.names(name, tensor)), plan.config.scheme)
    if scheme in COMPUTED_IN_FLOAT:
        return f"scheme {scheme!r} computes in float"
    from litert_quantizer import algorithm_manager, qtyping, recipe_manager

    manager = recipe_manager.RecipeManager()
    manager.load_quantization_recipe(list(plan.recipe))
    known = name in {op.value for op in qtyping.TFLOperationName}
    if (
        not known
        or manager.get_quantization_configs(qtyping.TFLOperationName(name), f"{tensor};")[0] == algorithm_manager.AlgorithmName.NO_QUANTIZE
    ):
        form = "form with int8 weights" if scheme == "dynamic_range" else f"{scheme} form"
        return f"litert-quantizer has no {form} of {name}"
    return "litert-quantizer left it float: none of its tensors qualifies"

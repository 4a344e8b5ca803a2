"""From a float flatbuffer, a config and calibrated ranges to a plan, and from the plan to the quantized flatbuffer.

    plan = make_plan(float_model, QuantizationConfig(scheme="int8"), ranges, calibration_digest)
    quantized = apply_plan(float_model, plan, ranges)

A plan is plain data that a person can read and edit. Applying it needs no data and gives the same bytes wherever it is done.
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.backends import converter, litert
from tfx_edge.litert.backends.choice import choose
from tfx_edge.litert.backends.litert import statistics as _statistics
from tfx_edge.litert.float_ops import check_integer_only, float_ops, size_reason
from tfx_edge.litert.recipes import block_size, recipe
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.signatures import check_io_type, signatures
from tfx_edge.litert.weights import check_weights, sharing_operators, undivided_operators
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan, TensorRanges

__all__ = ["apply_plan", "check_fits", "make_plan", "make_trained_plan"]


def make_plan(
    float_model: bytes,
    config: QuantizationConfig,
    ranges: TensorRanges | None = None,
    calibration_digest: str | None = None,
    examples: Mapping[str, NDArray[Any]] | None = None,
) -> QuantizationPlan:
    """Plans the quantization of a model, and tries it, so that the plan tells which operators stay float.

    Args:
        float_model: a float flatbuffer, as `litert.convert` gives it.
        config: the scheme and the types of inputs and outputs.
        ranges: of every float activation; schemes `int8` and `int16x8` need them, no other reads them.
        calibration_digest: of the data that the ranges come from.
        examples: `[n, ...]` each, by feature name, on which backend `auto` compares; None takes random ones within the ranges.

    Raises:
        EdgeError: a rule is about no operator of the model; `integer_only` and a float tensor is left; and as `apply_plan` does.
    """
    _check_rules(float_model, config)
    check_weights(float_model, config.scheme, config.rules)
    plan = QuantizationPlan(
        config=config,
        recipe=() if config.backend == "converter" else recipe(config, sharing_operators(float_model), _undivided(float_model, config)),
        backend="converter" if config.backend == "converter" else "litert",
        float_ops=(),
        float_model_digest=inspect.digest(float_model),
        calibration_digest=calibration_digest if config.needs_calibration else None,
    )
    if config.backend == "auto" and plan.recipe:
        by_converter = plan.model_copy(update={"backend": "converter", "recipe": ()})
        plans = (plan, by_converter)
        chosen, reason, quantized = choose(float_model, plans, lambda each: apply_plan(float_model, each, ranges), ranges, examples)
        plan = chosen.model_copy(update={"backend_reason": reason})
    else:
        quantized = apply_plan(float_model, plan, ranges)
    return _described(plan, float_model, quantized)


def make_trained_plan(float_model: bytes, quantized: bytes, config: QuantizationConfig) -> QuantizationPlan:
    """The plan of a model that quantization-aware training made: TFLiteConverter carries it out, the model itself says how.

    Args:
        float_model: the flatbuffer that `litert.convert` makes of the model in float.
        quantized: the one that it makes with `quantized_io`.
        config: with `qat`.

    Raises:
        EdgeError: LiteRT can't load the quantized flatbuffer; `integer_only` and a float tensor is left.
    """
    check_weights(float_model, config.scheme)
    Runner(quantized, name="the model after quantization-aware training")
    plan = QuantizationPlan(config=config, method="qat", recipe=(), float_ops=(), float_model_digest=inspect.digest(float_model))
    if config.integer_only:
        check_integer_only(quantized, tuple(float_ops(quantized, plan)))
    return _described(plan, float_model, quantized)


def _described(plan: QuantizationPlan, float_model: bytes, quantized: bytes) -> QuantizationPlan:
    """With what the quantized flatbuffer tells."""
    ops = tuple(float_ops(quantized, plan))
    return plan.model_copy(update={"float_ops": ops, "size_reason": size_reason(float_model, quantized, plan)})


def _undivided(float_model: bytes, config: QuantizationConfig) -> list[tuple[str, str]]:
    """The operators whose weights don't divide into blocks of a size that the config or one of its rules asks for."""
    blocks = {g: size for g in (config.granularity, *(r.granularity for r in config.rules)) if (size := block_size(g))}
    return sorted({op for size in blocks.values() for op in undivided_operators(float_model, size)})


def _check_rules(float_model: bytes, config: QuantizationConfig) -> None:
    if not config.rules:
        return
    there = [(kind, output) for _, _, kind, output in inspect.named_operators(inspect.parse(float_model))]
    for rule in config.rules:
        if not any(rule.names(*op) for op in there):
            raise EdgeError(
                f"the rule operator {rule.operator!r}, tensor {rule.tensor!r} is about no operator of the model, which has "
                f"{', '.join(sorted({kind for kind, _ in there})) or 'none'}; name one of its operators, or leave the rule out"
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
        The flatbuffer, checked to load in LiteRT; `float_model` itself where nothing is to be quantized.

    Raises:
        EdgeError: the plan is for another model; scheme `int8` without calibrated ranges, or without one of a tensor; a weight
            is NaN or doesn't fit its operator's scheme; the backend can't do what the plan asks, or LiteRT can't load what comes of it;
            inputs or outputs that aren't of the config's `io_type`, or `integer_only` and a float tensor is left.
    """
    check_fits(float_model, plan)
    if plan.method == "qat":
        raise EdgeError("a plan of method 'qat' is carried out by litert.convert with quantized_io, from the model that the training made")
    check_weights(float_model, plan.config.scheme, plan.config.rules)
    if plan.backend == "converter":
        quantized = converter.quantize(float_model, plan.config, ranges)
    elif plan.recipe:
        quantized = _by_recipe(float_model, plan, ranges)
    else:
        return float_model
    _check_loads(quantized, plan.config.scheme, ranges)
    check_io_type(float_model, quantized, plan.config.io_type)
    if plan.config.integer_only:
        check_integer_only(quantized, tuple(float_ops(quantized, plan)))
    return quantized


def _by_recipe(float_model: bytes, plan: QuantizationPlan, ranges: TensorRanges | None) -> bytes:
    statistics = _statistics(float_model, ranges) if plan.config.needs_ranges else None
    try:
        return litert.quantize(float_model, plan.config, plan.recipe, statistics)
    except EdgeError as error:
        if plan.recipe == recipe(plan.config, sharing_operators(float_model), _undivided(float_model, plan.config)):
            raise
        raise EdgeError(f"{error}; the plan's recipe isn't what its config gives: mend plan.json, or run Quantizer again") from error


def _check_loads(quantized: bytes, scheme: str, ranges: TensorRanges | None) -> None:
    try:
        for signature in signatures(quantized):
            Runner(quantized, signature=signature, name=f"scheme {scheme!r}")
    except EdgeError as error:
        if not ranges or not ranges.ranges or "XNNPACK" not in str(error):
            raise
        width = {name: r.max - r.min for name, r in ranges.ranges.items()}
        narrow, wide = min(width, key=width.__getitem__), max(width, key=width.__getitem__)
        raise EdgeError(
            f"{error}; its ranges go from {width[narrow]:g} (tensor {narrow!r}) to {width[wide]:g} ({wide!r}), "
            "which may be too far apart: scale the features in Transform"
        ) from error

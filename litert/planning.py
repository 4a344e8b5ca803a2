"""The whole way from a config to a plan: search, ranges, corrections, recipe; and from the plan to the flatbuffer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.agreement import disagreement
from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.corrections import apply_constants
from tfx_edge.litert.plan import apply_plan, check_fits, make_plan
from tfx_edge.litert.ranges import EMPTY
from tfx_edge.litert.search import Evaluator, SearchResult, search
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan, TensorRanges


@dataclass(frozen=True)
class Planned:
    """All that turns a float flatbuffer into the quantized one.

    Attributes:
        plan: what is done, and why.
        ranges: of the activations.
        constants: what the corrections put in the place of the float flatbuffer's, by index of the tensor.
    """

    plan: QuantizationPlan
    ranges: TensorRanges = EMPTY
    constants: Mapping[int, NDArray[Any]] = field(default_factory=dict)


def plan_quantization(
    candidates: Candidates, config: QuantizationConfig, calibration_digest: str | None = None, evaluate: Evaluator | None = None
) -> tuple[Planned, SearchResult | None]:
    """Plans the quantization of a model, where the config has an accuracy target by searching.

    Args:
        candidates: of the float flatbuffer, with its calibration data where the config needs some.
        config: what is asked.
        calibration_digest: of the calibration data.
        evaluate: what candidates of a search are worth; needed with `accuracy_target`.

    Returns:
        The plan's parts, and what the search found, if there was one. A target that wasn't met is a warning in the plan.

    Raises:
        EdgeError: the model can't be quantized as asked; see `make_plan`, `Candidates` and `search`.
    """
    found = None
    if config.accuracy_target is not None:
        if evaluate is None:
            raise EdgeError(
                "accuracy_target needs examples to measure on and there are none; give Quantizer Transform's transformed_examples"
            )
        found = search(candidates.float_model, config, config.accuracy_target, candidates, evaluate)
        config = found.config
    corrected = candidates.prepared(config)
    examples = candidates.examples or None if config.backend == "auto" else None
    plan = make_plan(corrected.float_model, config, corrected.ranges, calibration_digest, examples)
    warnings = [] if found is None or found.met else [found.reason]
    if corrected.statistics:
        warning = disagreement(corrected.statistics, config.ranges, config.num_bits)
        warnings += [warning] if warning else []
    plan = plan.model_copy(
        update={
            "float_model_digest": inspect.digest(candidates.float_model),
            "corrected_digest": inspect.digest(corrected.float_model) if config.corrections else None,
            "corrected": corrected.report,
            "trials": found.trials if found else (),
            "decision": found.reason if found else "",
            "warnings": tuple(warnings),
        }
    )
    planned = Planned(plan, corrected.ranges, corrected.constants)
    unwatched = evaluate.unwatched(carry_out(candidates.float_model, planned)) if found and evaluate else None
    if unwatched:
        planned = replace(planned, plan=plan.model_copy(update={"warnings": (*plan.warnings, unwatched)}))
    return planned, found


def carry_out(float_model: bytes, planned: Planned) -> bytes:
    """Quantizes a model as a plan of method `ptq` says; needs no data and gives the same bytes wherever it is done.

    Args:
        float_model: the float flatbuffer that the plan was made for.
        planned: what `plan_quantization` gave.

    Raises:
        EdgeError: the plan is for another model, its constants aren't those that it was made with, or as `apply_plan` does.
    """
    plan = planned.plan
    check_fits(float_model, plan)
    corrected = apply_constants(float_model, planned.constants)
    digest = inspect.digest(corrected)
    if digest != (plan.corrected_digest or plan.float_model_digest):
        raise EdgeError(
            f"the quantization plan's constants.npz makes the corrected model {digest[:12]} of this one, the plan was made for "
            f"{(plan.corrected_digest or plan.float_model_digest)[:12]}; run Quantizer again"
        )
    return apply_plan(corrected, plan.model_copy(update={"float_model_digest": digest}), planned.ranges)

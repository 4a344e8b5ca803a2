"""Models that plain int8 breaks, each for a reason of its own, and what the accuracy search makes of them.

Half of the examples that no model was trained on is for the search, the other half judges what it found. What it prints is the table
in docs/accuracy_target.md: `pytest -s`.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from hard_models import HARD_MODELS, HardModel

from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.collector import Collector
from tfx_edge.litert.planning import carry_out, plan_quantization
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Evaluator, Maker
from tfx_edge.schemas import AccuracyTarget, EdgeError, QuantizationConfig, Threshold

MAX_DROP = 0.005
TARGET = AccuracyTarget(
    threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=MAX_DROP), label_key="label", split="validation", examples=None
)
INT8 = QuantizationConfig(scheme="int8", accuracy_target=TARGET)
CHANCE = 0.01  # that the other half of the examples may add: two standard errors of a difference in one of forty


@cache
def hard_model(name: str) -> HardModel:
    return HARD_MODELS[name]()


def score(hard: HardModel, flatbuffer: bytes, part: slice) -> float:
    return hard.score(predicted(hard, flatbuffer, part), hard.truth[part])


def predicted(hard: HardModel, flatbuffer: bytes, part: slice):
    [output] = Runner(flatbuffer)({name: values[part] for name, values in hard.features.items()}).values()
    return output


def halves(hard: HardModel) -> tuple[slice, slice]:
    middle = len(hard.truth) // 2
    return slice(0, middle), slice(middle, None)


def candidates(hard: HardModel) -> Candidates:
    return Candidates(hard.flatbuffer, lambda model: Collector(model, TARGET.range_methods)(hard.sample), lambda: hard.sample)


def as_litert_quantizer_does(hard: HardModel) -> bytes:
    """With its own calibrator, which averages over examples, on what a careless user would give it."""
    import numpy.typing  # noqa: F401  litert-quantizer uses it without importing it
    from litert_quantizer import quantizer, recipe

    count = len(next(iter(hard.calibration.values())))
    data = [{name: values[i : i + 1] for name, values in hard.calibration.items()} for i in range(count)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tool = quantizer.Quantizer(hard.flatbuffer, recipe.static_wi8_ai8())
        return bytes(tool.quantize(tool.calibrate({"serving_default": data})).quantized_model)


def plain_int8(hard: HardModel) -> bytes:
    """With true ranges, of what a careless user would give."""
    ranges = RangeCollector(hard.flatbuffer)(hard.calibration)
    return Maker(hard.flatbuffer, ranges)(QuantizationConfig(scheme="int8"))


@pytest.mark.parametrize("name", [name for name in HARD_MODELS if name not in ("lstm", "gru")])
def test_the_search_recovers_what_naive_int8_loses(name: str) -> None:
    hard = hard_model(name)
    search_on, judge_on = halves(hard)
    given = {key: values[search_on] for key, values in hard.features.items()}
    [output] = Runner(hard.flatbuffer).signature.output_names
    evaluate = Evaluator(hard.flatbuffer, given, output, lambda outputs: hard.score(outputs, hard.truth[search_on]))
    planned, found = plan_quantization(candidates(hard), INT8, "digest", evaluate)
    model = carry_out(hard.flatbuffer, planned)
    floating = score(hard, hard.flatbuffer, judge_on)
    naive = [score(hard, make(hard), judge_on) for make in (as_litert_quantizer_does, plain_int8)]
    after = score(hard, model, judge_on)
    print(f"\n{name}: float {floating:.4f}, naive {naive[0]:.4f}, plain {naive[1]:.4f}, found {after:.4f}; {found.reason}")  # noqa: T201
    assert min(naive) < floating - 0.02
    assert found.met and found.metric >= found.float_metric - MAX_DROP
    assert after >= floating - MAX_DROP - CHANCE
    assert planned.plan.decision == found.reason and planned.plan.trials == found.trials


def test_int8_of_an_lstm_keeps_its_accuracy_but_shrinks_nothing_unless_the_converter_does_it() -> None:
    hard = hard_model("lstm")
    _, judge_on = halves(hard)
    make = candidates(hard)
    plain = carry_out(hard.flatbuffer, plan_quantization(make, QuantizationConfig(scheme="int8"), "digest")[0])
    planned, _ = plan_quantization(make, QuantizationConfig(scheme="int8", backend="auto"), "digest")
    assert len(plain) > 0.95 * len(hard.flatbuffer)
    assert planned.plan.backend == "converter" and "smaller at equal error" in planned.plan.backend_reason
    model = carry_out(hard.flatbuffer, planned)
    assert len(model) < 0.6 * len(hard.flatbuffer)
    assert score(hard, model, judge_on) >= score(hard, hard.flatbuffer, judge_on) - MAX_DROP


def test_a_gru_that_takes_no_ranges_gets_dynamic_range_and_every_refused_candidate_says_why() -> None:
    hard = hard_model("gru")
    search_on, judge_on = halves(hard)
    given = {key: values[search_on] for key, values in hard.features.items()}
    [output] = Runner(hard.flatbuffer).signature.output_names
    evaluate = Evaluator(hard.flatbuffer, given, output, lambda outputs: hard.score(outputs, hard.truth[search_on]))
    with pytest.raises(EdgeError, match="control flow"):
        candidates(hard)(QuantizationConfig(scheme="int8"))
    planned, found = plan_quantization(candidates(hard), INT8, "digest", evaluate)
    model = carry_out(hard.flatbuffer, planned)
    assert found.met and planned.plan.config.scheme == "dynamic_range" and len(model) < 0.8 * len(hard.flatbuffer)
    assert all("control flow" in trial.error for trial in found.trials if trial.error) and found.trials[0].error
    assert np.isfinite(predicted(hard, model, judge_on)).all()
    assert score(hard, model, judge_on) >= score(hard, hard.flatbuffer, judge_on) - MAX_DROP - CHANCE

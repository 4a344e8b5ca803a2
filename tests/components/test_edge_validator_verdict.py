import itertools
import math

import numpy as np
import pytest

from tfx_edge.components.edge_validator.slices import matches
from tfx_edge.components.edge_validator.verdict import Measured, SliceResult, comparisons, reasons
from tfx_edge.schemas import GateConfig, Slice, Threshold

FEATURES = ("label", "digit", "city")


def config(*thresholds: Threshold, slices: tuple[Slice, ...] = (), min_examples: int = 1) -> GateConfig:
    return GateConfig(label_key="label", thresholds=thresholds, slices=slices, min_examples=min_examples)


def accuracy(**bounds: object) -> Threshold:
    return Threshold(metric="SparseCategoricalAccuracy", **bounds)


def overall(baseline: float | None, candidate: float | None, examples: int = 100) -> SliceResult:
    return SliceResult((), examples, (Measured(baseline, candidate),))


def float32(numerator: int, denominator: int) -> float:
    """A ratio as TFMA's metrics give it."""
    return float(np.float32(numerator) / np.float32(denominator))


@pytest.mark.parametrize("n", [7, 100, 997, 60_000])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_drop_of_exactly_max_drop_passes_and_of_one_example_more_does_not(n: int, higher_is_better: bool) -> None:
    steps = sorted({1, 2, n // 100 + 1, n // 10, n // 3, n // 2})
    rounded_the_wrong_way = 0
    for lost, right in itertools.product(steps, steps):
        if lost + right + 1 > n:
            continue
        better, exact, worse = float32(right + lost + 1, n), float32(right + 1, n), float32(right, n)
        if not higher_is_better:
            better, exact, worse = -better, -exact, -worse
        conf = config(Threshold(metric="MeanPrediction", max_drop=lost / n, higher_is_better=higher_is_better))
        assert reasons(conf, [overall(better, exact)], FEATURES) == []
        assert len(reasons(conf, [overall(better, worse)], FEATURES)) == 1
        rounded_the_wrong_way += abs(better - exact) > lost / n
    assert rounded_the_wrong_way or n == 7, "none of these cases needs the allowance for rounding"


def test_a_small_metric_gets_a_small_allowance_for_rounding() -> None:
    assert reasons(config(accuracy(max_drop=1e-9)), [overall(5e-8, 4.8e-8)], FEATURES)


@pytest.mark.parametrize(("bounds", "candidate", "passes"), [
    ({"lower_bound": 0.9}, float(np.float32(0.9)), True),  # which is less than 0.9
    ({"lower_bound": 0.9}, 0.8999, False),
    ({"upper_bound": 0.1}, float(np.float32(0.1)), True),  # which is more than 0.1
    ({"upper_bound": 0.1}, 0.1001, False),
    ({"lower_bound": -0.3}, float(np.float32(-0.3)), True),
    ({"lower_bound": 0.0}, 0.0, True),
])  # fmt: skip
def test_a_value_on_its_bound_passes(bounds: dict[str, float], candidate: float, passes: bool) -> None:
    assert (reasons(config(accuracy(**bounds)), [overall(0.5, candidate)], FEATURES) == []) == passes


def test_a_gain_is_no_drop() -> None:
    assert reasons(config(accuracy(max_drop=0.0)), [overall(0.8, 0.9)], FEATURES) == []
    assert reasons(config(Threshold(metric="MeanPrediction", max_drop=0.0, higher_is_better=False)), [overall(0.9, 0.8)], FEATURES) == []


def test_the_reason_names_metric_slice_both_values_difference_bound_and_examples() -> None:
    result = SliceResult((("city", "oslo"), ("digit", 3)), 123, (Measured(0.95, 0.9),))
    sliced = Slice(feature_keys=("city", "digit"))
    (reason,) = reasons(config(accuracy(max_drop=0.01, slices=(sliced,))), [overall(0.95, 0.2), result], FEATURES)
    for part in ("SparseCategoricalAccuracy", "city=oslo, digit=3", "0.9,", "0.95", "-0.05", "max_drop 0.01", "123 examples"):
        assert part in reason


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("model", ["baseline", "candidate"])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_metric_that_is_missing_or_not_finite_never_passes(value: float | None, model: str, higher_is_better: bool) -> None:
    values = {"baseline": 0.5, "candidate": 0.5, model: value}
    conf = config(Threshold(metric="MeanPrediction", max_drop=0.999, higher_is_better=higher_is_better))
    (reason,) = reasons(conf, [overall(**values)], FEATURES)
    assert model in reason
    assert ("missing" if value is None else str(value)) in reason


def test_a_bound_on_the_candidate_alone_needs_no_baseline() -> None:
    assert reasons(config(accuracy(lower_bound=0.5)), [overall(None, 0.6)], FEATURES) == []
    assert len(reasons(config(accuracy(lower_bound=0.5)), [overall(None, 0.4)], FEATURES)) == 1


def test_every_bound_of_every_threshold_counts() -> None:
    conf = config(accuracy(lower_bound=0.9, max_drop=0.1), accuracy(upper_bound=0.5))
    values = Measured(0.95, 0.8)
    assert len(reasons(conf, [SliceResult((), 100, (values, values))], FEATURES)) == 3


def test_a_threshold_holds_overall_and_in_every_slice_of_the_config() -> None:
    conf = config(accuracy(max_drop=0.01), slices=(Slice(feature_keys=("digit",)),))
    bad = SliceResult((("digit", 4),), 50, (Measured(0.9, 0.5),))
    good = SliceResult((("digit", 3),), 50, (Measured(0.9, 0.9),))
    (reason,) = reasons(conf, [overall(0.9, 0.9), good, bad], FEATURES)
    assert "digit=4" in reason


def test_a_slice_of_another_threshold_is_not_held_to_this_one() -> None:
    conf = config(accuracy(max_drop=0.0), accuracy(lower_bound=0.1, slices=(Slice(feature_keys=("digit",)),)))
    dropped = Measured(0.9, 0.5)
    assert (
        reasons(conf, [SliceResult((), 50, (Measured(0.9, 0.9),) * 2), SliceResult((("digit", 1),), 50, (dropped, dropped))], FEATURES)
        == []
    )


def test_a_slice_with_too_few_examples_fails_however_good_it_is() -> None:
    conf = config(accuracy(max_drop=0.5), slices=(Slice(feature_keys=("digit",)),), min_examples=20)
    few, enough = (SliceResult((("digit", d),), n, (Measured(0.9, 1.0),)) for d, n in ((1, 19), (2, 20)))
    (reason,) = reasons(conf, [overall(0.9, 1.0), few, enough], FEATURES)
    assert "digit=1" in reason and "19 examples" in reason and "min_examples 20" in reason


def test_too_few_examples_overall_fail() -> None:
    assert "slice Overall: 19 examples" in reasons(config(accuracy(max_drop=0.5), min_examples=20), [overall(1, 1, 19)], FEATURES)[0]


def test_a_slice_under_no_threshold_may_be_small() -> None:
    conf = config(
        accuracy(max_drop=0.5, slices=(Slice(feature_keys=("city",)),)), slices=(Slice(feature_keys=("digit",)),), min_examples=20
    )
    results = [SliceResult((("city", "oslo"),), 50, (Measured(1, 1),)), SliceResult((("digit", 1),), 2, (Measured(1, 1),))]
    assert reasons(conf, results, FEATURES) == []


@pytest.mark.parametrize(
    "named", [Slice(feature_values={"digit": "12"}), Slice(feature_keys=("digit",)), Slice(feature_keys=("city", "digit"))]
)
def test_a_slice_that_never_occurs_fails(named: Slice) -> None:
    (reason,) = reasons(config(accuracy(max_drop=0.5), slices=(named,)), [overall(1, 1)], FEATURES)
    assert str(named) in reason and "no example is in it" in reason


def test_a_slice_by_a_feature_that_the_examples_lack_fails_and_says_so() -> None:
    (reason,) = reasons(config(accuracy(max_drop=0.5), slices=(Slice(feature_keys=("hour",)),)), [overall(1, 1)], FEATURES)
    assert "no feature 'hour'" in reason and "digit" in reason


def test_no_results_at_all_fail() -> None:
    assert reasons(config(accuracy(max_drop=0.5)), [], FEATURES)


@pytest.mark.parametrize(("sliced", "key", "expected"), [
    (None, (), True),
    (None, (("digit", 3),), False),
    (Slice(feature_keys=("digit",)), (), False),
    (Slice(feature_keys=("digit",)), (("digit", 3),), True),
    (Slice(feature_keys=("digit",)), (("city", "oslo"), ("digit", 3)), False),
    (Slice(feature_values={"digit": "3"}), (("digit", 3),), True),
    (Slice(feature_values={"digit": "3"}), (("digit", 4),), False),
    (Slice(feature_values={"digit": "3"}), (("digit", "3"),), True),
    (Slice(feature_values={"weight": "0.5"}), (("weight", 0.5),), True),
    (Slice(feature_keys=("digit",), feature_values={"city": "oslo"}), (("city", "oslo"), ("digit", 3)), True),
    (Slice(feature_keys=("digit",), feature_values={"city": "oslo"}), (("city", "rome"), ("digit", 3)), False),
])  # fmt: skip
def test_a_slice_matches_as_tfma_matches_it(sliced: Slice | None, key: tuple[tuple[str, str | int | float], ...], expected: bool) -> None:
    slicer_lib = pytest.importorskip("tensorflow_model_analysis.slicer.slicer_lib")
    spec = (
        slicer_lib.SingleSliceSpec(columns=sliced.feature_keys, features=sliced.feature_values.items())
        if sliced
        else slicer_lib.SingleSliceSpec()
    )
    assert matches(sliced, key) == expected == spec.is_slice_applicable(key)


def test_the_report_has_every_metric_in_every_slice_once_and_no_nan() -> None:
    conf = config(accuracy(max_drop=0.1), accuracy(lower_bound=0.1), Threshold(metric="AUC", lower_bound=0.1))
    same, other = Measured(0.9, 0.8), Measured(0.7, math.nan)
    results = [SliceResult((("digit", 2),), 5, (same, same, other)), SliceResult((), 9, (same, same, other))]
    rows = comparisons(conf, results)
    assert [(r.metric, r.slice, r.examples) for r in rows] == [
        ("SparseCategoricalAccuracy", "Overall", 9),
        ("SparseCategoricalAccuracy", "digit=2", 5),
        ("AUC", "Overall", 9),
        ("AUC", "digit=2", 5),
    ]
    assert rows[0].difference == pytest.approx(-0.1)
    assert rows[2].candidate is None and rows[2].difference is None and rows[2].baseline == 0.7

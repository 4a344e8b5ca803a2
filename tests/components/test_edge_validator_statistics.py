"""Moments, intervals and decisions, against plain formulas and simulated evaluations. No TensorFlow."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy import stats

from tfx_edge.components.edge_validator.statistics.decisions import alpha, holm, needed_examples
from tfx_edge.components.edge_validator.statistics.estimates import Estimate, agrees, candidate, difference, from_resamples
from tfx_edge.components.edge_validator.statistics.moments import EMPTY, Moments, merge, moments
from tfx_edge.components.edge_validator.statistics.paired import Paired, from_document, merge_paired, paired, to_document


def close(a: Moments, b: Moments) -> bool:
    return (a.examples, a.zero_one) == (b.examples, b.zero_one) and np.allclose(
        [a.weight, a.squared_weight, a.mean, a.first, a.second],
        [b.weight, b.squared_weight, b.mean, b.first, b.second],
        rtol=1e-9,
        atol=1e-9,
    )


def shares(both: int, lost: int, won: int, neither: int) -> Paired:
    """A paired comparison of accuracies from the four cells."""
    baseline = np.repeat([1, 1, 0, 0], [both, lost, won, neither])
    return paired(baseline, np.repeat([1, 0, 1, 0], [both, lost, won, neither]))


# Moments


@pytest.mark.parametrize("weighted", [False, True])
def test_merged_moments_are_those_of_all_values_however_they_are_cut(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(3, 2, 500), rng.uniform(0, 3, 500) if weighted else None
    whole = moments(values, weights)
    for seed in range(20):
        cuts = sorted(random.Random(seed).sample(range(501), 7))
        parts = [moments(values[a:b], None if weights is None else weights[a:b]) for a, b in itertools.pairwise([0, *cuts, 500])]
        random.Random(seed).shuffle(parts)
        assert close(merge(parts), whole)
        assert close(merge([merge(parts[:3]), merge(parts[3:])]), whole)
        assert merge([EMPTY, whole]) == merge([whole, EMPTY]) == whole


def test_moments_hold_numpys_mean_and_variance() -> None:
    values = np.random.default_rng(1).exponential(size=300)
    m = moments(values)
    assert (m.examples, m.effective, m.zero_one) == (300, 300, False)
    assert m.mean == pytest.approx(values.mean())
    assert m.second / 299 == pytest.approx(values.var(ddof=1))


def test_a_spread_that_is_tiny_beside_the_mean_survives_merging() -> None:
    values = 1e8 + np.random.default_rng(2).normal(size=10_000)
    merged = merge(moments(part) for part in np.split(values, 100))
    assert merged.second / 9999 == pytest.approx(np.var(values, ddof=1), rel=1e-6)


def test_weights_count_an_example_as_often_and_none_of_weight_zero() -> None:
    m = moments(np.array([1.0, 4.0, 9.0]), np.array([1.0, 2.0, 0.0]))
    assert (m.examples, m.mean, m.zero_one) == (2, 3.0, False)
    assert m.effective == pytest.approx(9 / 5)
    assert moments(np.array([1.0, 0.5]), np.array([1.0, 0.0])).zero_one


# Intervals


def test_the_interval_of_a_mean_is_students() -> None:
    rng = np.random.default_rng(3)
    baseline = rng.normal(size=50)
    found = baseline + rng.normal(0.1, 0.2, 50)
    interval = difference(paired(baseline, found)).interval(0.9)
    expected = stats.ttest_rel(found, baseline).confidence_interval(0.9)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.method == "paired_t"


@pytest.mark.parametrize(("both", "lost", "won", "neither"), [(300, 12, 5, 83), (40, 0, 0, 0), (10, 3, 0, 7)])
def test_the_interval_of_a_share_is_that_of_agresti_and_min(both: int, lost: int, won: int, neither: int) -> None:
    n, b, c = both + lost + won + neither + 2, lost + 0.5, won + 0.5
    center, error = (c - b) / n, math.sqrt((b + c) - (c - b) ** 2 / n) / n
    interval = difference(shares(both, lost, won, neither)).interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((center - 1.959964 * error, center + 1.959964 * error))
    assert interval.method == "agresti_min"


@pytest.mark.parametrize(("right", "wrong"), [(380, 20), (40, 0)])
def test_the_interval_of_one_share_is_that_of_agresti_and_coull(right: int, wrong: int) -> None:
    n = right + wrong + 4
    center = (right + 2) / n
    interval = candidate(shares(right, 0, 0, wrong)).interval(0.95)
    width = 1.959964 * math.sqrt(center * (1 - center) / n)
    assert (interval.low, interval.high) == pytest.approx((center - width, center + width))
    assert interval.method == "agresti_coull"


def test_equal_weights_change_nothing_whatever_they_are() -> None:
    rng = np.random.default_rng(4)
    for baseline, found in ((rng.normal(size=80), rng.normal(size=80)), (rng.integers(2, size=80), rng.integers(2, size=80))):
        plain, weighted = paired(baseline, found), paired(baseline, found, np.full(80, 3.0))
        for estimate in (difference, candidate):
            expected, got = estimate(plain), estimate(weighted)
            assert (got.center, got.error, got.freedom) == pytest.approx((expected.center, expected.error, expected.freedom))


def test_where_no_example_differs_a_share_is_still_uncertain() -> None:
    interval = difference(shares(40, 0, 0, 0)).interval(0.95)
    assert interval.low is not None and interval.low < -0.04
    assert difference(shares(4000, 0, 0, 0)).interval(0.95).low == pytest.approx(-0.00049, abs=1e-5)


def test_pairing_tells_more_than_two_separate_samples_would() -> None:
    rng = np.random.default_rng(5)
    baseline = rng.exponential(size=400)
    comparison = paired(baseline, baseline + rng.normal(0, 0.01, 400))
    assert difference(comparison).error < candidate(comparison).error / 20


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_examples_tell_nothing(count: int) -> None:
    estimate = difference(paired(np.full(count, 0.3), np.full(count, 0.4)))
    interval = estimate.interval(0.95)
    assert (interval.low, interval.high) == (None, None)
    assert estimate.p_value(-100.0, "above") == 1


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    "estimate", [difference(shares(90, 6, 3, 1)), candidate(shares(90, 6, 3, 1)), from_resamples(-0.02, 0.01, freedom=19)]
)
def test_a_p_value_is_at_its_level_exactly_where_the_interval_ends(estimate: Estimate, confidence: float) -> None:
    interval = estimate.interval(confidence)
    assert interval.low is not None and interval.high is not None
    assert estimate.p_value(interval.low, "above") == pytest.approx(alpha(confidence))
    assert estimate.p_value(interval.high, "below") == pytest.approx(alpha(confidence))
    assert estimate.p_value(interval.low - 1e-3, "above") < alpha(confidence) < estimate.p_value(interval.low + 1e-3, "above")


def test_what_is_not_a_number_speaks_for_nothing() -> None:
    for estimate in (from_resamples(math.nan, 0.01, freedom=19), from_resamples(0.0, math.nan, freedom=19)):
        assert estimate.p_value(-1.0, "above") == estimate.p_value(1.0, "below") == 1
        assert estimate.interval(0.95).low is None
    assert to_document("m", None, paired(np.array([0.1, math.nan]), np.array([0.1, 0.2]))) is None


def test_a_difference_without_spread_clears_a_bound_that_it_lies_on() -> None:
    estimate = from_resamples(-0.01, 0.0, freedom=19)
    assert (estimate.p_value(-0.01, "above"), estimate.p_value(-0.009, "above")) == (0, 1)


def test_a_mean_that_is_not_the_metrics_value_is_told() -> None:
    sample = moments(np.random.default_rng(6).exponential(size=1000))
    assert agrees(sample, float(np.float32(sample.mean)))
    assert not agrees(sample, sample.mean * 1.0001)
    assert not agrees(sample, None) and not agrees(sample, math.nan) and not agrees(EMPTY, 0.0)


def test_a_comparison_comes_back_from_its_document() -> None:
    comparison = merge_paired([shares(3, 1, 2, 4), shares(5, 0, 1, 0)])
    document = to_document("Accuracy", "digit", comparison)
    assert document is not None and (document.lower, document.higher) == (1, 3)
    assert from_document(type(document).from_json(document.to_json())) == comparison


# Coverage


def coverage(draw, truth: float, evaluations: int = 1000) -> float:
    rng = np.random.default_rng(7)
    intervals = [draw(rng).interval(0.95) for _ in range(evaluations)]
    return sum(i.low <= truth <= i.high for i in intervals) / evaluations


@pytest.mark.parametrize(("lost", "won"), [(0.03, 0.02), (0.015, 0.005), (0.02, 0.03)])
def test_an_interval_of_accuracies_holds_the_truth_as_often_as_it_says(lost: float, won: float) -> None:
    def draw(rng: np.random.Generator) -> Estimate:
        return difference(shares(*rng.multinomial(400, [0.9 - lost, lost, won, 0.1 - won])))

    assert 0.93 <= coverage(draw, won - lost) <= 0.97


@pytest.mark.parametrize("weighted", [False, True])
def test_an_interval_of_errors_holds_the_truth_as_often_as_it_says(weighted: bool) -> None:
    def draw(rng: np.random.Generator) -> Estimate:
        error = rng.normal(size=400)
        weights = rng.uniform(0.2, 2, 400) if weighted else None
        return difference(paired(error**2, (error + rng.normal(0.05, 0.1, 400)) ** 2, weights))

    assert 0.93 <= coverage(draw, 0.05**2 + 0.1**2) <= 0.97


def test_weights_that_go_with_the_difference_are_covered_too() -> None:
    """The truth is a weighted mean: half of the examples weigh 3 and lose 0.2, the others weigh 1 and lose nothing."""

    def draw(rng: np.random.Generator) -> Estimate:
        heavy = rng.random(400) < 0.5
        return difference(paired(np.zeros(400), rng.normal(np.where(heavy, -0.2, 0), 0.5), np.where(heavy, 3.0, 1.0)))

    assert 0.93 <= coverage(draw, -0.15) <= 0.97


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_an_interval_of_one_share_holds_the_truth_as_often_as_it_says(share: float) -> None:
    def draw(rng: np.random.Generator) -> Estimate:
        right = rng.random(400) < share
        return candidate(paired(right, right))

    assert 0.93 <= coverage(draw, share) <= 0.97


def test_a_candidate_that_loses_just_too_much_seldom_clears_the_bound() -> None:
    rng = np.random.default_rng(8)
    draws = (difference(shares(*rng.multinomial(400, [0.88, 0.03, 0.02, 0.07]))) for _ in range(2000))
    assert sum(d.p_value(-0.01, "above") <= alpha(0.95) for d in draws) / 2000 < 0.035


# Decisions


@pytest.mark.parametrize(
    "comparison",
    [shares(352, 8, 6, 34), shares(100, 0, 0, 10), paired(np.arange(60.0), np.arange(60.0) - 0.005 - 0.02 * (np.arange(60) % 3 - 1))],
)
def test_as_many_examples_as_needed_decide_and_one_less_does_not(comparison: Paired) -> None:
    n, level = comparison.difference.examples, alpha(0.95)
    needed = needed_examples(lambda factor: difference(comparison, factor), n, -0.0055, "above", level)
    assert needed is not None and needed > n
    assert difference(comparison, needed / n).p_value(-0.0055, "above") <= level
    assert difference(comparison, (needed - 1) / n).p_value(-0.0055, "above") > level


def test_the_needed_examples_do_decide_when_they_come() -> None:
    """At the number that it names, half of the evaluations of such a model decide: that is what the mean clearing it means."""
    pilot = shares(352, 8, 6, 34)
    needed = needed_examples(lambda factor: difference(pilot, factor), 400, -0.015, "above", alpha(0.95))
    assert needed is not None and 400 < needed < 2000
    rng = np.random.default_rng(9)
    draws = (difference(shares(*rng.multinomial(needed, [0.88, 0.02, 0.015, 0.085]))) for _ in range(1000))
    assert 0.4 < sum(d.p_value(-0.015, "above") <= alpha(0.95) for d in draws) / 1000 < 0.6


def test_enough_examples_need_no_more() -> None:
    comparison = shares(3900, 1, 2, 97)
    assert needed_examples(lambda factor: difference(comparison, factor), 4000, -0.01, "above", 0.025) == 4000


@pytest.mark.parametrize(("lost", "bound"), [(8, -0.01), (4, -0.01)])
def test_no_number_of_examples_clears_a_bound_that_the_value_misses_or_lies_on(lost: int, bound: float) -> None:
    comparison = shares(400 - lost, lost, 0, 0)
    assert needed_examples(lambda factor: difference(comparison, factor), 400, bound, "above", 0.025) is None


def test_resamples_tell_how_many_examples_are_needed_too() -> None:
    needed = needed_examples(lambda factor: from_resamples(0.02, 0.02, freedom=19, factor=factor), 100, 0.03, "below", 0.025)
    assert needed == pytest.approx(100 * (stats.t.ppf(0.975, 19) * 2) ** 2, abs=1)


def test_nothing_known_needs_no_number() -> None:
    assert needed_examples(lambda factor: difference(Paired(), factor), 0, -1.0, "above", 0.025) is None
    assert needed_examples(lambda factor: from_resamples(0.0, math.nan, freedom=19), 10, -1.0, "above", 0.025) is None


def holm_by_definition(p_values: list[float], level: float) -> set[int]:
    rejected: set[int] = set()
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected.add(index)
    return rejected


def test_holms_correction_rejects_what_its_definition_does() -> None:
    generator = random.Random(10)
    for _ in range(300):
        p_values = [generator.random() ** 4 for _ in range(generator.randint(1, 8))]
        adjusted = holm(p_values)
        assert {i for i, p in enumerate(adjusted) if p <= 0.05} == holm_by_definition(p_values, 0.05)
        assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))


def test_holms_correction_takes_what_is_no_number_for_no_evidence() -> None:
    assert holm([math.nan, 0.001]) == (1.0, 0.002)
    assert holm([]) == ()


def test_with_holm_all_statements_hold_together_as_often_as_they_say() -> None:
    """Ten slices that all lose just too much: without the correction some statement is wrong far more often than alpha."""
    rng, wrong = np.random.default_rng(11), {"plain": 0, "holm": 0}
    for _ in range(1000):
        p_values = [difference(shares(*rng.multinomial(400, [0.88, 0.03, 0.02, 0.07]))).p_value(-0.01, "above") for _ in range(10)]
        wrong["plain"] += min(p_values) <= 0.025
        wrong["holm"] += min(holm(p_values)) <= 0.025
    assert wrong["plain"] > 100
    assert wrong["holm"] <= 40

import re
from collections.abc import Callable

import numpy as np
import pytest

from tfx_edge.components.edge_validator.certainty import undecided
from tfx_edge.components.edge_validator.statistics.estimates import Estimate, difference
from tfx_edge.components.edge_validator.statistics.paired import paired
from tfx_edge.components.edge_validator.verdict import Measured, SliceResult
from tfx_edge.schemas import GateConfig, Slice, Threshold

ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02)


def config(*thresholds: Threshold, **fields: object) -> GateConfig:
    return GateConfig(label_key="label", thresholds=thresholds or (ACCURACY,), **fields)


def measured(n: int, lost: int, won: int = 0, known: bool = True) -> Measured:
    """Accuracies of n examples, of which the candidate has some more wrong and some more right than the baseline."""
    baseline = np.r_[np.ones(n - won), np.zeros(won)]
    candidate = np.r_[np.zeros(lost), np.ones(n - lost)]
    comparison = paired(baseline, candidate)
    estimate: Callable[[float], Estimate] | None = (lambda factor: difference(comparison, factor)) if known else None
    return Measured(float(baseline.mean()), float(candidate.mean()), estimate)


def result(n: int, *metrics: Measured, key: tuple[tuple[str, int], ...] = ()) -> SliceResult:
    return SliceResult(key=key, examples=n, metrics=metrics)


def test_without_a_confidence_nothing_is_undecided() -> None:
    assert undecided(config(), [result(50, measured(50, 1))]) == []


def test_a_drop_well_within_its_bound_is_certain_and_one_near_it_is_not() -> None:
    assert undecided(config(confidence=0.95), [result(4000, measured(4000, 8))]) == []
    (line,) = undecided(config(confidence=0.95), [result(400, measured(400, 6))])
    assert line.startswith("SparseCategoricalAccuracy, slice Overall (400 examples): undecided; the difference lies within -0.0")


def test_the_examples_that_it_asks_for_decide_and_fewer_do_not() -> None:
    (line,) = undecided(config(confidence=0.95), [result(400, measured(400, 4))])
    needed = int(re.search(r"about (\d+) examples would decide", line)[1])  # type: ignore[index]
    assert 400 < needed < 1000
    enough = -(-needed // 100) * 100  # of which one in a hundred is a whole number
    assert undecided(config(confidence=0.95), [result(enough, measured(enough, enough // 100))]) == []
    fewer = (needed - 1) // 100 * 100
    assert undecided(config(confidence=0.95), [result(fewer, measured(fewer, fewer // 100))]) != []


def test_a_drop_that_misses_its_bound_as_measured_is_left_to_the_threshold() -> None:
    assert undecided(config(confidence=0.95), [result(400, measured(400, 100))]) == []


def test_what_nothing_is_known_of_is_undecided() -> None:
    (line,) = undecided(config(confidence=0.9), [result(400, measured(400, 0, known=False))])
    assert "how certain its difference is can't be told, as confidence 0.9 asks" in line


@pytest.mark.parametrize(("lost", "certain"), [(0, True), (6, False)])
def test_a_metric_that_falls_is_held_from_the_other_side(lost: int, certain: bool) -> None:
    errors = Threshold(metric="MeanAbsoluteError", max_drop=0.02)
    values = measured(4000 if certain else 400, 0, won=lost)  # the more the candidate's value rises, the worse
    assert (undecided(config(errors, confidence=0.95), [result(400, values)]) == []) == certain


def test_holm_asks_for_more_in_many_slices_and_never_for_less() -> None:
    slices = (Slice(feature_keys=("group",)),)
    results = [result(9000, measured(9000, 100)), *(result(900, measured(900, 12), key=(("group", g),)) for g in range(10))]
    plain = undecided(config(confidence=0.8, slices=slices), results)
    holm = undecided(config(confidence=0.8, slices=slices, correction="holm"), results)
    assert plain == []
    assert len(holm) == 10
    assert all("corrected for 11 comparisons" in line for line in holm)

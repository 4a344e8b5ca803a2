"""Drift: flips and errors as plain numpy finds them, whatever way the data is cut."""

from typing import Any

import numpy as np
import pytest

from tfx_edge.components.edge_validator.statistics.drift import BatchDrift, Drift, drift_document, merge_drift
from tfx_edge.schemas.statistics import OutputDrift

N = 200


def drift(baseline: Any, candidate: Any, labels: Any, parts: int = 1) -> OutputDrift:
    merged = merge_drift(
        BatchDrift(b, c, None if labels is None else y).over(np.arange(len(b)))
        for b, c, y in zip(*(np.array_split(a, parts) for a in (baseline, candidate, baseline if labels is None else labels)), strict=True)
    )
    return drift_document("out", merged, merged.evidence)


def noisy(*shape: int, low: float = 0.0, high: float = 1.0, noise: float = 0.1, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    baseline = rng.uniform(low, high, (N, *shape))
    return tuple(np.clip(p, low, high).astype(np.float32) for p in (baseline, baseline + rng.normal(0, noise, baseline.shape)))


@pytest.mark.parametrize("parts", [1, 7])
def test_errors_are_those_that_numpy_finds(parts: int) -> None:
    baseline, candidate = noisy(3, low=-5, high=5)
    found = drift(baseline, candidate, np.zeros((N, 3)) + 0.5, parts)
    b, error = baseline.astype(np.float64), candidate.astype(np.float64) - baseline
    assert found.mean_abs_error == pytest.approx(np.abs(error).mean())
    assert found.worst_abs_error == np.abs(error).max()
    assert found.sqnr_db == pytest.approx(10 * np.log10((b**2).sum() / (error**2).sum()))
    assert (found.examples, found.flip_rule, found.flips, found.flip_rate) == (N, None, None, None)


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("labels", [np.arange(N) % 4, (np.arange(N) % 4)[:, None].astype(np.float32), np.eye(4)[np.arange(N) % 4]])
def test_classes_flip_where_the_highest_prediction_moves(labels: Any, parts: int) -> None:
    baseline, candidate = noisy(4)
    found = drift(baseline, candidate, labels, parts)
    assert found.flip_rule == "argmax"
    assert found.flips == (baseline.argmax(1) != candidate.argmax(1)).sum() > 0


@pytest.mark.parametrize(("low", "rule", "bound"), [(0.0, "above 0.5", 0.5), (-1.0, "above 0", 0.0)])
def test_one_probability_or_logit_flips_where_it_crosses_its_threshold(low: float, rule: str, bound: float) -> None:
    baseline, candidate = noisy(1, low=low)
    found = drift(baseline, candidate, np.arange(N) % 2, 5)
    assert found.flip_rule == rule
    assert found.flips == ((baseline > bound) != (candidate > bound)).sum() > 0


def test_an_example_with_several_labels_flips_where_one_of_them_does() -> None:
    baseline, candidate = noisy(3)
    labels = np.random.default_rng(1).integers(2, size=(N, 3))
    found = drift(baseline, candidate, labels)
    assert found.flip_rule == "above 0.5"
    assert found.flips == ((baseline > 0.5) != (candidate > 0.5)).any(axis=1).sum() > 0


def test_predictions_that_are_classes_flip_where_they_differ() -> None:
    baseline = np.arange(N) % 5
    found = drift(baseline, np.where(np.arange(N) < 3, 9, baseline), np.arange(N) % 5)
    assert (found.flip_rule, found.flips, found.mean_abs_error, found.worst_abs_error, found.sqnr_db) == ("values", 3, None, None, None)


@pytest.mark.parametrize(
    "labels",
    [
        np.linspace(0, 3, N),  # a regression
        np.arange(N) % 9,  # whole numbers, but more than there are predictions
        None,
        np.array([b"a"] * N, object),
    ],
)
def test_without_classes_among_the_labels_nothing_flips(labels: Any) -> None:
    assert drift(*noisy(4), labels).flip_rule is None


def test_one_batch_that_does_not_fit_a_rule_undoes_it_for_all() -> None:
    baseline, candidate = noisy(1)
    labels = (np.arange(N) % 2).astype(np.float32)
    labels[-1] = 0.5
    assert drift(baseline, candidate, labels[:, None], 10).flip_rule is None


def test_equal_predictions_do_not_drift() -> None:
    baseline, _ = noisy(4)
    found = drift(baseline, baseline, np.arange(N) % 4)
    assert (found.flips, found.mean_abs_error, found.worst_abs_error, found.sqnr_db) == (0, 0, 0, None)


def test_merging_with_nothing_changes_nothing() -> None:
    baseline, candidate = noisy(2)
    one = BatchDrift(baseline, candidate, None).over(np.arange(N))
    assert merge_drift([Drift(), one]) == merge_drift([one, Drift()]) == one

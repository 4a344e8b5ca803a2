"""Latency of two models in turn. The clock itself isn't tested: only orders of magnitude that no load turns around."""

from typing import Any

import numpy as np
import pytest
from looping import looping

from tfx_edge.litert.latency import latency_ratio
from tfx_edge.schemas import EdgeError

X: dict[str, Any] = {"x": np.zeros((3, 1), np.float32), "label": np.zeros(3, np.int64)}


def test_the_model_that_works_a_thousand_times_as_long_is_the_slower() -> None:
    slow, fast = looping(20_000), looping(2)
    measured = latency_ratio(slow, fast, X, runs=5)
    assert measured.candidate_ms > measured.reference_ms
    assert measured.ratio == measured.candidate_ms / measured.reference_ms
    assert measured.spread[0] <= measured.ratio <= measured.spread[1]
    assert measured.runs == 5
    assert latency_ratio(fast, slow, X, runs=5).ratio < 1


def test_a_model_of_a_fixed_batch_counts_per_example() -> None:
    """Each runs the same loop in one step; that of 512 examples has 512 in it."""
    assert latency_ratio(looping(5_000, batch=512), looping(5_000), X, runs=5).ratio < 0.5


@pytest.mark.parametrize("which", ["candidate", "reference"])
def test_a_model_that_cannot_run_is_named(which: str) -> None:
    models = {"candidate": looping(2), "reference": looping(2), which: looping(2)[:200]}
    with pytest.raises(EdgeError, match=rf"^latency: the {which} \(200 bytes\): LiteRT can't load it"):
        latency_ratio(models["candidate"], models["reference"], X)


def test_a_model_that_never_ends_is_ended_and_named() -> None:
    with pytest.raises(EdgeError, match=r"^latency: the reference's first prediction didn't finish within 4 s"):
        latency_ratio(looping(2), looping(np.inf), X, time_limit_s=4)


def test_a_feature_that_is_missing_is_named() -> None:
    with pytest.raises(EdgeError, match="no feature 'x'"):
        latency_ratio(looping(2), looping(2), {"label": X["label"]})


def test_without_examples_or_rounds_there_is_nothing_to_measure() -> None:
    with pytest.raises(EdgeError, match="no example to run the models on"):
        latency_ratio(looping(2), looping(2), {"x": np.zeros((0, 1), np.float32)})
    with pytest.raises(EdgeError, match="runs 4; a median of fewer than 5"):
        latency_ratio(looping(2), looping(2), X, runs=4)

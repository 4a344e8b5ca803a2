from collections.abc import Callable
from types import SimpleNamespace

import gate_data
import numpy as np
import pytest

from tfx_edge.components.edge_validator.cost import measure_cost
from tfx_edge.litert.inspect import gzip_size, operators
from tfx_edge.schemas import Budget, EdgeError


@pytest.fixture(scope="module")
def models() -> SimpleNamespace:
    data = gate_data.examples(200)
    keras_model = gate_data.train(data)
    return SimpleNamespace(data=data, float32=gate_data.flatbuffer(keras_model), int8=gate_data.int8_flatbuffer(keras_model, data["x"]))


def no_baseline() -> bytes:
    raise EdgeError("there is no baseline")


def test_without_a_budget_nothing_is_against_any_size_and_no_baseline_is_asked_for() -> None:
    cost = measure_cost(b"x" * 1000, no_baseline, None, Budget())
    assert (cost.size_bytes, cost.gzip_bytes, cost.reasons) == (1000, gzip_size(b"x" * 1000), ())
    assert cost.baseline_size_bytes is cost.baseline_gzip_bytes is cost.latency is cost.peak_memory_bytes is None


@pytest.mark.parametrize("field", ["max_bytes", "max_gzip_bytes"])
def test_a_size_of_exactly_its_budget_passes_and_one_byte_more_does_not(field: str) -> None:
    content = bytes(range(256))
    have = {"max_bytes": 256, "max_gzip_bytes": gzip_size(content)}[field]
    assert measure_cost(content, no_baseline, None, Budget(**{field: have})).reasons == ()
    (reason,) = measure_cost(content, no_baseline, None, Budget(**{field: have - 1})).reasons
    assert f"{have} bytes, 1 more than {field} {have - 1}" in reason


def test_a_ratio_of_exactly_its_budget_passes_and_a_higher_one_does_not(models: SimpleNamespace) -> None:
    ratio = gzip_size(models.float32) / gzip_size(models.int8)
    passed = measure_cost(models.int8, lambda: models.float32, None, Budget(min_gzip_ratio=ratio))
    assert passed.reasons == ()
    assert (passed.baseline_size_bytes, passed.baseline_gzip_bytes) == (len(models.float32), gzip_size(models.float32))
    (reason,) = measure_cost(models.int8, lambda: models.float32, None, Budget(min_gzip_ratio=ratio * 1.01)).reasons
    assert f"the candidate {gzip_size(models.int8)}, " in reason and "min_gzip_ratio is " in reason


def test_operators_that_the_runtime_lacks_are_named(models: SimpleNamespace) -> None:
    there = operators(models.int8)
    assert measure_cost(models.int8, no_baseline, None, Budget(operators=(*there, "ADD"))).reasons == ()
    (reason,) = measure_cost(models.int8, no_baseline, None, Budget(operators=tuple(set(there) - {"SOFTMAX"}))).reasons
    assert reason.startswith("operators: the candidate has SOFTMAX, the device's runtime ")


def test_latency_and_memory_are_held_to_their_budgets(models: SimpleNamespace) -> None:
    generous = Budget(max_latency_ratio=1e6, max_peak_memory_bytes=10**12)
    cost = measure_cost(models.int8, lambda: models.float32, models.data, generous)
    assert cost.reasons == ()
    assert cost.latency is not None and cost.latency.candidate_ms > 0 and cost.peak_memory_bytes is not None
    impossible = Budget(max_latency_ratio=1e-9, max_peak_memory_bytes=1)
    latency, memory = measure_cost(models.int8, lambda: models.float32, models.data, impossible).reasons
    assert "max_latency_ratio is 1e-09" in latency
    assert "max_peak_memory_bytes is 1;" in memory


UNMEASURABLE: dict[str, tuple[bytes, Callable[[], bytes], dict[str, np.ndarray] | None, str]] = {
    "min_gzip_ratio": (b"candidate", no_baseline, None, "there is no baseline"),
    "max_latency_ratio": (b"candidate", lambda: b"reference", None, "the models couldn't be run"),
    "max_peak_memory_bytes": (b"candidate", no_baseline, {"x": np.zeros((1, 4), np.float32)}, "no TFL3 identifier"),
    "operators": (b"candidate", no_baseline, None, "no TFL3 identifier"),
}


@pytest.mark.parametrize("field", UNMEASURABLE)
def test_a_budget_that_cannot_be_measured_is_a_reason(field: str) -> None:
    candidate, baseline, features, why = UNMEASURABLE[field]
    bound = ("CONV_2D",) if field == "operators" else 2
    (reason,) = measure_cost(candidate, baseline, features, Budget(**{field: bound})).reasons
    assert f"budget: {field} " in reason and "can't be measured: " in reason and why in reason

from typing import Any

import pytest

from tfx_edge.components.edge_validator.drift_limits import beyond_limits
from tfx_edge.schemas import ConfigError, DriftLimit, OutputDrift


def drift(output: str | None = None, **fields: Any) -> OutputDrift:
    measured = {"flip_rule": "argmax", "flips": 10, "mean_abs_error": 0.1, "worst_abs_error": 0.5, "sqnr_db": 20.0}
    return OutputDrift(output=output, examples=100, **{**measured, **fields})


@pytest.mark.parametrize(("limit", "within", "beyond"), [
    ("max_flip_rate", 0.1, 0.09), ("max_mean_abs_error", 0.1, 0.09), ("max_worst_abs_error", 0.5, 0.49), ("min_sqnr_db", 20.0, 20.1),
])  # fmt: skip
def test_what_lies_on_its_limit_passes_and_beyond_is_told(limit: str, within: float, beyond: float) -> None:
    assert beyond_limits([DriftLimit(**{limit: within})], [drift()]) == []
    (line,) = beyond_limits([DriftLimit(**{limit: beyond})], [drift()])
    assert f"{limit} {beyond:g}" in line


def test_a_limit_holds_for_every_output_or_for_the_one_it_names() -> None:
    outputs = [drift("kind", flips=50), drift("size", flips=60)]
    assert len(beyond_limits([DriftLimit(max_flip_rate=0.1)], outputs)) == 2
    (line,) = beyond_limits([DriftLimit(output="size", max_flip_rate=0.1)], outputs)
    assert line.startswith("drift of output 'size': flip_rate is 0.6")


@pytest.mark.parametrize(("limit", "missing"), [
    ("max_flip_rate", {"flips": None, "flip_rule": None}), ("max_mean_abs_error", {"mean_abs_error": None}), ("min_sqnr_db", {"sqnr_db": None}),
])  # fmt: skip
def test_a_limit_on_what_cannot_be_measured_is_missed(limit: str, missing: dict[str, None]) -> None:
    (line,) = beyond_limits([DriftLimit(**{limit: 0.5})], [drift(**missing)])
    assert f"{limit} 0.5 can't be measured: " in line


def test_an_output_that_is_not_there_is_told() -> None:
    assert beyond_limits([DriftLimit(output="size", max_flip_rate=0.5)], [drift("kind")]) == [
        "drift: limit on output 'size', the models' outputs are kind; name one of these, or leave the output out"
    ]


def test_the_same_predictions_have_no_noise() -> None:
    same = drift(flips=0, mean_abs_error=0.0, worst_abs_error=0.0, sqnr_db=None)
    assert beyond_limits([DriftLimit(min_sqnr_db=90.0, max_flip_rate=0.0, max_worst_abs_error=0.0)], [same]) == []


def test_a_limit_without_a_bound_is_an_error() -> None:
    with pytest.raises(ConfigError, match="drift of every output has no bound"):
        DriftLimit()

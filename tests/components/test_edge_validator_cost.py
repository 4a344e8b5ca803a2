from types import SimpleNamespace

import gate_data
import pytest

from tfx_edge.components.edge_validator.sizes import measure_sizes
from tfx_edge.litert.inspect import gzip_size
from tfx_edge.schemas import Budget

CANDIDATE = b"candidate"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A baseline, and what its float flatbuffer weighs."""
    keras_model = gate_data.train(gate_data.examples(50))
    folder = tmp_path_factory.mktemp("baseline")
    keras_model.save(folder)
    measured = measure_sizes(CANDIDATE, str(folder), None, Budget(min_gzip_ratio=1e6))
    return SimpleNamespace(folder=str(folder), keras=keras_model, measured=measured)


def test_without_a_budget_nothing_is_against_any_size_and_no_baseline_is_converted() -> None:
    sizes = measure_sizes(b"x" * 1000, "/no/such/model", None, Budget())
    assert (sizes.size, sizes.gzip, sizes.reasons) == (1000, gzip_size(b"x" * 1000), ())
    assert sizes.baseline_size is sizes.baseline_gzip is None


@pytest.mark.parametrize("field", ["max_bytes", "max_gzip_bytes"])
def test_a_size_of_exactly_its_budget_passes_and_one_byte_more_does_not(field: str) -> None:
    content = bytes(range(256))
    have = {"max_bytes": 256, "max_gzip_bytes": gzip_size(content)}[field]
    assert measure_sizes(content, None, None, Budget(**{field: have})).reasons == ()
    (reason,) = measure_sizes(content, None, None, Budget(**{field: have - 1})).reasons
    assert f"{have} bytes, 1 more than {field} {have - 1}" in reason


def test_the_baseline_weighs_what_its_flatbuffer_weighs(models: SimpleNamespace) -> None:
    own = gate_data.flatbuffer(models.keras)
    assert models.measured.baseline_size == pytest.approx(len(own), rel=0.1)
    assert models.measured.baseline_gzip == pytest.approx(gzip_size(own), rel=0.1)


def test_a_candidate_that_is_not_so_many_times_smaller_is_refused(models: SimpleNamespace) -> None:
    (reason,) = models.measured.reasons
    assert f"the candidate {gzip_size(CANDIDATE)}, " in reason
    assert "min_gzip_ratio is 1e+06" in reason


def test_a_ratio_of_exactly_its_budget_passes(models: SimpleNamespace) -> None:
    ratio = models.measured.baseline_gzip / gzip_size(CANDIDATE)
    assert measure_sizes(CANDIDATE, models.folder, None, Budget(min_gzip_ratio=ratio)).reasons == ()


@pytest.mark.parametrize("baseline", [None, "/no/such/model"])
def test_a_ratio_that_cannot_be_measured_is_a_reason(baseline: str | None) -> None:
    (reason,) = measure_sizes(CANDIDATE, baseline, None, Budget(min_gzip_ratio=2)).reasons
    assert "min_gzip_ratio 2 can't be measured: " in reason
    assert ("there is no baseline" if baseline is None else "/no/such/model") in reason

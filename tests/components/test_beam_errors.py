"""Errors of workers, by running Beam in each of the ways that the direct runner has."""

import logging
from collections.abc import Iterable

import apache_beam as beam
import pytest

from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.schemas import ConfigError, EdgeError

TEXT = "feature 'x': got [3]: odd while running; fix it"


def failing(where: str, error: Exception) -> beam.DoFn:
    """A DoFn that raises from the method that `where` names; local, so that Beam sends its code: other processes can't import a test."""

    class Failing(beam.DoFn):
        def setup(self) -> None:
            if where == "setup":
                raise error

        def process(self, element: int) -> Iterable[int]:
            if where == "process":
                try:
                    raise KeyError(element)
                except KeyError as first:
                    raise error from first
            yield element

        def finish_bundle(self) -> None:
            if where == "finish_bundle":
                raise error

    return Failing()


def run(mode: str, do_fn: beam.DoFn) -> None:
    arguments = ["--runner=DirectRunner", f"--direct_running_mode={mode}", "--direct_num_workers=1"]
    with beam.Pipeline(argv=arguments) as pipeline:
        pipeline | beam.Create([1, 2]) | "A [step]" >> beam.ParDo(do_fn)


@pytest.mark.parametrize("where", ["setup", "process", "finish_bundle"])
@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_an_edge_error_of_a_worker_comes_out_with_its_own_text(mode: str, where: str) -> None:
    with pytest.raises(EdgeError) as caught, clean_errors():
        run(mode, failing(where, EdgeError(TEXT)))
    assert type(caught.value) is EdgeError
    assert str(caught.value) == TEXT
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("mode", ["in_memory", "multi_processing"])
def test_a_subclass_comes_out_as_itself_from_another_process_too(mode: str) -> None:
    with pytest.raises(ConfigError) as caught, clean_errors():
        run(mode, failing("process", ConfigError(TEXT)))
    assert str(caught.value) == TEXT


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_an_error_that_is_no_edge_error_keeps_what_beam_made_of_it(mode: str) -> None:
    with pytest.raises((ValueError, RuntimeError)) as caught, clean_errors():
        run(mode, failing("process", ValueError(TEXT)))
    assert not isinstance(caught.value, EdgeError)
    assert "A [step]" in str(caught.value)


def test_the_log_has_no_traceback_of_an_edge_error_and_keeps_that_of_others(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(EdgeError), clean_errors():
        run("in_memory", failing("process", EdgeError(TEXT)))
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []
    with pytest.raises(ValueError, match="odd"), clean_errors():
        run("in_memory", failing("process", ValueError(TEXT)))
    assert [r for r in caplog.records if r.levelno >= logging.ERROR]


def test_an_edge_error_outside_a_worker_is_left_as_it_is() -> None:
    error = EdgeError(TEXT)
    with pytest.raises(EdgeError) as caught, clean_errors():
        raise error
    assert caught.value is error
    assert str(error) == TEXT


def test_an_edge_error_that_caused_another_exception_comes_out() -> None:
    with pytest.raises(EdgeError) as caught, clean_errors():
        try:
            raise EdgeError(TEXT)
        except EdgeError as error:
            raise OSError("worker died") from error
    assert str(caught.value) == TEXT


def test_an_edge_error_that_was_handled_before_another_failure_is_not_blamed() -> None:
    handled = f"Traceback:\ntfx_edge.schemas.errors.EdgeError: {TEXT}\n"
    with pytest.raises(RuntimeError), clean_errors():
        raise RuntimeError(f"{handled}\nDuring handling of the above exception, another exception occurred:\n\nMemoryError")


def test_of_several_edge_errors_in_a_traceback_the_last_is_the_one() -> None:
    first = "tfx_edge.schemas.errors.EdgeError: read: failed"
    last = f"tfx_edge.schemas.errors.EdgeError: {TEXT} [while running 'Read']"
    with pytest.raises(EdgeError) as caught, clean_errors():
        raise RuntimeError(f"{first}\n\nThe above exception was the direct cause of the following exception:\n\n{last}\n")
    assert str(caught.value) == TEXT

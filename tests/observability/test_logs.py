"""Log lines as JSON: what is on each, from every way the suite logs, and what isn't."""

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tfx_edge.observability import current_run, log_as_asked, running
from tfx_edge.observability.logs import JsonFormatter
from tfx_edge.observability.redaction import redacted
from tfx_edge.schemas import EdgeError, RunInfo

RUN = RunInfo(pipeline="digits", run_id="run-1", component="Pruner", execution_id="7", input_artifacts={"model": (1,)})


@pytest.fixture
def lines() -> Iterator[list[dict]]:
    """What is logged, line by line."""
    written: list[dict] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = self.format(record)
            assert "\n" not in text
            written.append(json.loads(text))

    handler = Handler()
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("tfx_edge_test")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield written
    logger.removeHandler(handler)


LOG = logging.getLogger("tfx_edge_test")


def test_a_line_names_the_run_and_the_component_that_logs_it(lines: list[dict]) -> None:
    LOG.info("before")
    with running(RUN):
        LOG.warning("pruned %s\nto %.1f", "dense", 0.5)
    assert current_run() == RunInfo()
    before, line = lines
    assert set(before) == {"time", "level", "logger", "message"}
    assert line.pop("time").endswith("+00:00")
    marks = {"pipeline": "digits", "run_id": "run-1", "component": "Pruner", "execution_id": "7"}
    assert line == {"level": "WARNING", "logger": "tfx_edge_test", "message": "pruned dense\nto 0.5", **marks}


def test_worker_threads_log_as_the_component_that_runs(lines: list[dict]) -> None:
    with running(RUN):
        thread = threading.Thread(target=LOG.info, args=("in a thread",))
        thread.start()
        thread.join()
    assert lines[0]["component"] == "Pruner"


def test_an_exception_is_on_the_line_and_extra_fields_are_fields(lines: list[dict]) -> None:
    try:
        raise ValueError("no\nsuch layer")
    except ValueError:
        LOG.exception("failed", extra={"seconds": 1.5, "place": {1: object}})
    [line] = lines
    assert line["error"] == "ValueError: no\nsuch layer" and line["traceback"].startswith("Traceback")
    assert line["seconds"] == 1.5 and line["place"] == {"1": "<class 'object'>"}


def test_no_secret_gets_into_a_line_from_message_exception_or_extra(lines: list[dict]) -> None:
    secret = "s3cr3t-hunter2"
    url = f"https://me:{secret}@host/a"
    try:
        raise OSError(url)
    except OSError:
        LOG.exception("reading %s", url, extra={"at": [url], "by": {"x": url}})
    LOG.info("%s", f"gs://b/o?X-Goog-Signature={secret}&a=1 Authorization: Bearer {secret}")
    assert secret not in json.dumps(lines) and "host/a" in lines[0]["message"] and "&a=1" in lines[1]["message"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://t0ken@host/x", "https://[hidden]@host/x"),
        ("key -----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY----- here", "key [hidden] here"),
        ("with ghp_0123456789abcdefghijklmnop", "with [hidden]"),
        ("a?access_token=abc;max_steps=3&sig=x", "a?access_token=[hidden];max_steps=3&sig=[hidden]"),
        ("basic principles of a token bearer", "basic principles of a token bearer"),
        ("metadata at sqlite:///tmp/a.db, user@host", "metadata at sqlite:///tmp/a.db, user@host"),
    ],
)
def test_secrets_are_hidden_by_their_look_and_the_rest_stays(text: str, shown: str) -> None:
    assert redacted(text) == shown


SCRIPT = """
import logging, os, sys
from absl import flags, logging as absl_logging
from tfx_edge.observability import log_as_asked, running
from tfx_edge.schemas import RunInfo
if sys.argv[1] == "absl":
    flags.FLAGS(["program"])  # as absl.app.run does
    absl_logging.use_absl_handler()
if sys.argv[1] == "basic":
    logging.basicConfig()
log_as_asked()
log_as_asked()
with running(RunInfo(component="Pruner")):
    absl_logging.info("absl %s", os.environ["API_TOKEN"])
    logging.info("root")
    logging.getLogger("tfx_edge.release").info("module")
    logging.debug("too much")
"""


@pytest.mark.parametrize("handler", ["none", "basic", "absl"])
def test_all_ways_to_log_become_json_once_however_the_process_was_set_up(handler: str) -> None:
    environment = {"TFX_EDGE_LOG": "json", "API_TOKEN": "abc-123-def-456", "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-c", SCRIPT, handler], env=environment, capture_output=True, text=True, check=True, cwd="/")
    lines = [json.loads(line) for line in run.stderr.splitlines()]
    assert [(line["logger"], line["message"]) for line in lines] == [
        ("absl", "absl [hidden]"),
        ("root", "root"),
        ("tfx_edge.release", "module"),
    ]
    assert {line["component"] for line in lines} == {"Pruner"} and run.stdout == ""


def test_without_the_variable_logging_stays_as_it_is_and_another_value_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFX_EDGE_LOG", raising=False)
    before = list(logging.getLogger().handlers)
    assert not log_as_asked() and logging.getLogger().handlers == before
    monkeypatch.setenv("TFX_EDGE_LOG", "yaml")
    with pytest.raises(EdgeError, match="TFX_EDGE_LOG='yaml': expected text or json"):
        log_as_asked()

"""Log lines as JSON objects: `TFX_EDGE_LOG=json`."""

import json
import logging
import os
import sys
from datetime import datetime, timezone
from typing import Any

from tfx_edge.observability.redaction import hide_environment, redacted
from tfx_edge.observability.run import current_run
from tfx_edge.schemas.errors import EdgeError

VARIABLE = "TFX_EDGE_LOG"

_FORMS = ("text", "json")
_PART_OF_A_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON.

    `time` (UTC), `level`, `logger`, `message`; `pipeline`, `run_id`, `component`, `execution_id` of the component that runs, where the
    orchestrator tells; `error` and `traceback` of an exception; what `extra=` gave. Secrets are hidden.
    """

    def format(self, record: logging.LogRecord) -> str:
        run = current_run().model_dump(include={"pipeline", "run_id", "component", "execution_id"}, exclude_none=True)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **run,
            **{name: value for name, value in vars(record).items() if name not in _PART_OF_A_RECORD and not name.startswith("_")},
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = f"{type(error).__name__}: {error}"
            line["traceback"] = self.formatException(record.exc_info)
        elif record.exc_text:
            line["traceback"] = record.exc_text
        return json.dumps(_without_secrets(line), default=lambda value: redacted(str(value)), ensure_ascii=False)


def log_as_asked() -> bool:
    """Makes this process's log lines JSON where the environment says so; a second call changes nothing.

    Handlers that write to standard output or error get the formatter; where there is none, one for standard error is added. Handlers of
    files stay as they are.

    Returns:
        Whether log lines are JSON.

    Raises:
        EdgeError: TFX_EDGE_LOG holds something else than text or json.
    """
    form = os.environ.get(VARIABLE) or "text"
    if form not in _FORMS:
        raise EdgeError(f"{VARIABLE}={form!r:.40}: expected {' or '.join(_FORMS)}")
    if form == "text":
        return False
    hide_environment()
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if _writes_to_the_terminal(handler)]
    if not ours:
        ours = [logging.StreamHandler()]
        root.addHandler(ours[0])
    for handler in ours:
        if not isinstance(handler.formatter, JsonFormatter):
            handler.setFormatter(JsonFormatter())
    if root.level in (logging.NOTSET, logging.WARNING):  # what nobody set
        root.setLevel(logging.INFO)
    if "absl.logging" in sys.modules:  # TFX's, which has a level of its own
        absl = logging.getLogger("absl")
        absl.setLevel(min(absl.getEffectiveLevel(), logging.INFO))
    return True


def _writes_to_the_terminal(handler: logging.Handler) -> bool:
    inner = getattr(handler, "python_handler", handler)  # absl's handler stands before one of its own
    return isinstance(inner, logging.StreamHandler) and inner.stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {str(key): _without_secrets(part) for key, part in value.items()}
    return [_without_secrets(part) for part in value] if isinstance(value, (list, tuple)) else value

"""A user's mistake that is found in a Beam worker, brought out as the one-line `EdgeError` that it is."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tfx_edge.schemas import EdgeError

# Beam appends the step to an exception's text; greedy, so that a message which holds these words itself keeps them.
_STEP = re.compile(r"^(.*) \[while running '.*'\]$", re.DOTALL)
_BEAM_LOG = logging.getLogger("apache_beam.runners.common")
_CHAINED = "\nDuring handling of the above exception, another exception occurred:\n"


@contextmanager
def clean_errors() -> Iterator[None]:
    """Wraps the run of a Beam pipeline: an `EdgeError` raised in a worker leaves the block as itself, with its own text.

    A runner in the same thread appends the step's name to it, the others turn it into a RuntimeError that holds the
    worker's traceback as text. Anything that isn't an `EdgeError` passes through untouched. In the same thread Beam also
    logs each failure with its traceback: that record is dropped for an `EdgeError`, whose text says what to do.

    >>> with clean_errors():
    ...     raise EdgeError("feature 'x': fix it [while running 'Read']")
    Traceback (most recent call last):
    ...
    tfx_edge.schemas.errors.EdgeError: feature 'x': fix it

    Raises:
        EdgeError: one was raised inside the block, in this process or in another one.
    """
    _BEAM_LOG.addFilter(_isnt_edge_error)
    try:
        yield
    except Exception as error:
        found = _find(error)
        if found is None:
            raise
        raise found from None
    finally:
        _BEAM_LOG.removeFilter(_isnt_edge_error)


def _isnt_edge_error(record: logging.LogRecord) -> bool:
    return not isinstance(record.msg, EdgeError)


def _find(error: BaseException | None) -> EdgeError | None:
    """The `EdgeError` that an exception is, was raised from, or quotes in its text."""
    while error is not None:
        if isinstance(error, EdgeError):
            error.args = (_without_step(str(error)), *error.args[1:])
            return error
        quoted = _quoted(str(error))
        if quoted is not None:
            return quoted
        error = error.__cause__
    return None


def _quoted(text: str) -> EdgeError | None:
    """Makes the `EdgeError` again that a traceback's text ends with; one that was handled before it doesn't count."""
    classes = {f"{c.__module__}.{c.__qualname__}": c for c in _classes(EdgeError)}
    line = re.compile(rf"^({'|'.join(map(re.escape, classes))}): (.+)$", re.MULTILINE)
    found = line.findall(text.rpartition(_CHAINED)[2])
    if not found:
        return None
    name, message = found[-1]
    return classes[name](_without_step(message))


def _classes(cls: type[EdgeError]) -> Iterator[type[EdgeError]]:
    yield cls
    for sub in cls.__subclasses__():
        yield from _classes(sub)


def _without_step(text: str) -> str:
    found = _STEP.match(text)
    return found[1] if found else text

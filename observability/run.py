"""Which component runs in this process: what log lines and metrics are marked with."""

import contextlib
from collections.abc import Iterator

from tfx_edge.schemas.lineage import RunInfo

_running: list[RunInfo] = []  # not a context variable: Beam's worker threads wouldn't see it, and orchestrators run one at a time


@contextlib.contextmanager
def running(run: RunInfo) -> Iterator[None]:
    """Marks what is logged and measured meanwhile, in any thread, as of this run."""
    _running.append(run)
    try:
        yield
    finally:
        _running.remove(run)


def current_run() -> RunInfo:
    """What runs; all of it None where nothing does."""
    return _running[-1] if _running else RunInfo()

"""All tools around a piece of work, and the files that they write."""

import contextlib
import logging
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from tfx_edge.profiling import flame, lines, memory, tensorflow
from tfx_edge.profiling.needs import require_tools
from tfx_edge.schemas.errors import EdgeError

# Outermost first: what traces memory starts last and stops first, so that it sees as little of the others as can be.
_TOOLS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "tensorflow": tensorflow.recorded,
    "flame": flame.recorded,
    "lines": lines.recorded,
    "memory": memory.recorded,
}
TOOLS = tuple(_TOOLS)

TOOLS_VARIABLE = "TFX_EDGE_PROFILE_TOOLS"
"""Names of `TOOLS` with commas between: only those. Tracing memory makes the work slower, and so the timings beside it."""

_busy = threading.Lock()
_log = logging.getLogger(__name__)


@contextlib.contextmanager
def profiled(folder: str | Path | None, name: str) -> Iterator[None]:
    """Profiles what runs inside, in this thread; also where it fails.

    Args:
        folder: gets a folder `name`, or `name-2` and so on where there is one, that appears with all its files. None or "": nothing is
            profiled, at no cost. Inside another profile neither.
        name: of the work.

    Raises:
        EdgeError: a tool isn't installed or known, or the folder can't be made. What raises inside comes through as it is; a profile
            that can't be written is logged, and the work's result stands.
    """
    if not folder or not _busy.acquire(blocking=False):
        yield
        return
    try:
        chosen = _chosen()
        part = _part(str(folder), name)
        failure: BaseException | None = None
        started = False
        try:
            with contextlib.ExitStack() as stack:
                for tool in chosen:
                    stack.enter_context(_TOOLS[tool](part))
                started = True
                try:
                    yield
                except BaseException as error:  # noqa: BLE001  # raised below, when its profile is written
                    failure = error
            _log.info("profile of %s: %s", name, _publish(part, name))
        except Exception as error:  # hours of work aren't lost for a full disk
            if not started:
                raise
            _log.error("no profile of %s: %s: %s", name, type(error).__name__, error)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        if failure is not None:
            raise failure
    finally:
        _busy.release()


def _chosen() -> tuple[str, ...]:
    wanted = os.environ.get(TOOLS_VARIABLE)
    names = tuple(name.strip() for name in wanted.split(",")) if wanted else TOOLS
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise EdgeError(f"{TOOLS_VARIABLE}={wanted!r:.80}: there is no {unknown[0]!r:.40}; expected some of {','.join(TOOLS)}")
    require_tools(names)
    return tuple(tool for tool in TOOLS if tool in names)


def _part(folder: str, name: str) -> Path:
    """A folder for the files, until all are there."""
    if "://" in folder:
        raise EdgeError(f"profile folder {folder!r:.200}: expected a path on this machine, for example of a mounted volume")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".profile-", suffix=".part", dir=Path(folder).absolute()))
    except OSError as error:
        raise EdgeError(f"profile folder {folder}: can't be written ({error.strerror}); name another one") from error


def _publish(part: Path, name: str) -> Path:
    """Gives the folder its name. Another process may take the same one at this moment: renaming onto a folder with files in it fails."""
    plain = re.sub(r"[^\w.-]+", "_", name).lstrip(".") or "profile"
    part.chmod(0o755)  # mkdtemp's are for this user alone
    number = 1
    while True:
        target = part.parent / (plain if number == 1 else f"{plain}-{number}")
        try:
            return part.rename(target)
        except OSError:
            if not target.exists():
                raise
            number += 1

"""Calling a function in a process of its own: a bad flatbuffer can kill its interpreter, or keep it busy for ever.

The process is started anew, not forked: a fork of a process with TensorFlow's and Beam's threads may hang by itself. It
imports what the function needs and nothing of the caller's.
"""

import contextlib
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tfx_edge.schemas import EdgeError

T = TypeVar("T")
Note = Callable[[str], None]

_CALL, _DOING, _RESULT = "call.pickle", "doing.txt", "result.pickle"


def call_in_child(function: Callable[..., T], *arguments: Any, time_limit_s: float) -> T:
    """Calls `function(note, *arguments)` in a new process and gives back its result.

    Args:
        function: of a module; gets first a function that notes what is being done, for the error when the process dies of it.
        arguments: anything that pickles.
        time_limit_s: seconds for the whole process.

    Raises:
        EdgeError: what the function raised itself, or the process was killed, or it took too long.
        RuntimeError: the function raised anything else.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / _CALL).write_bytes(pickle.dumps((function, arguments)))
        # The folder as working directory: Python looks for modules there first, and must not find a caller's.
        command = [sys.executable, "-m", __name__, name]
        try:
            child = subprocess.run(command, cwd=name, timeout=time_limit_s, capture_output=True, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            raise EdgeError(
                f"{_doing(folder)} didn't finish within {time_limit_s:g} s; raise the time limit if the model is that slow"
            ) from None
        if child.returncode < 0:
            raise EdgeError(
                f"{_doing(folder)} killed the process with {_signal(-child.returncode)}; the flatbuffer is damaged, or memory ran out"
            )
        if child.returncode > 0:
            raise RuntimeError(f"a child process ended with status {child.returncode} on {_doing(folder)}:\n{child.stderr[-2000:]}")
        result, error = pickle.loads((folder / _RESULT).read_bytes())  # noqa: S301 - written by our own process
        if error is not None:
            raise EdgeError(error)
        return result  # type: ignore[no-any-return]


def main(folder: Path) -> None:
    """What the child does."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, Linux ends this process and not the pipeline
    function, arguments = pickle.loads((folder / _CALL).read_bytes())  # noqa: S301 - written by our own process
    result, error = None, None
    try:
        result = function((folder / _DOING).write_text, *arguments)
    except EdgeError as raised:
        error = str(raised)
    (folder / _RESULT).write_bytes(pickle.dumps((result, error)))


def _doing(folder: Path) -> str:
    return (folder / _DOING).read_text() if (folder / _DOING).exists() else "starting the process"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))

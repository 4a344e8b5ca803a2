"""The side environment: TensorFlow Lite Micro and Vela pin packages that TFX pins otherwise, so they run in a Python of their own.

Looked for in this order: the running environment, if it has the tool; the Python that `TFX_EDGE_TARGETS_PYTHON` names; the
environment `targets` inside the running one, which the project's set-up makes.
"""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TFX_EDGE_TARGETS_PYTHON"

_PACKAGES = {"tflite_micro": "tflite-micro", "ethosu": "ethos-u-vela"}


@dataclass(frozen=True)
class Run:
    """A finished process.

    Attributes:
        status: exit status, or minus the number of the signal that ended it; None where it took too long.
        stdout: what it printed, and `stderr`.
    """

    status: int | None
    stdout: str
    stderr: str

    def fault(self, what: str, time_limit_s: float) -> str:
        """Why it failed, in one line."""
        if self.status is None:
            return f"{what} didn't finish within {time_limit_s:g} s; raise the time limit if the model is large"
        if self.status < 0:
            return f"the model ended {what} with {signal.Signals(-self.status).name}"
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()] or ["no message"]
        return f"{what} failed: {lines[-1]:.300}"


def find_python(module: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The Python that should have a tool's module; None where there is none. Whether it has it shows when it runs."""
    if importlib.util.find_spec(module) is not None:
        return Path(sys.executable)
    if environment.get(VARIABLE):
        return Path(environment[VARIABLE])
    python = Path(sys.prefix) / "targets" / "bin" / "python"
    return python if python.exists() else None


def not_installed(module: str) -> str:
    """The reason to give where a tool is missing."""
    package = _PACKAGES[module]
    return f"{package} isn't installed; pip install 'tfx-edge[targets]' in an environment of its own and name its Python in {VARIABLE}"


def version(python: Path, module: str) -> str | None:
    """The tool's version, or None where that Python doesn't run or hasn't got it."""
    code = f"import importlib.metadata as m, importlib.util as u; u.find_spec({module!r}) and print(m.version({_PACKAGES[module]!r}))"
    try:
        found = run(python, ["-c", code], python.parent, 60)  # -c looks for modules in its folder first, which must not be a caller's
    except OSError:
        return None
    return found.stdout.strip() or None if found.status == 0 else None


def run(python: Path, arguments: Sequence[str], folder: Path, time_limit_s: float) -> Run:
    """Runs that Python in a folder, ended after the time limit.

    Raises:
        OSError: there is no such Python.
    """
    # What points the running Python to its packages would mislead another.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON") and k != "VIRTUAL_ENV"}
    try:
        done = subprocess.run(
            [python, *arguments],
            cwd=folder,
            env=os.environ if python == Path(sys.executable) else environment,
            timeout=time_limit_s,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Run(None, "", "")
    return Run(done.returncode, done.stdout, done.stderr)

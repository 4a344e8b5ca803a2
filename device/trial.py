"""The self-test of a bundle in a process of its own: where LiteRT crashes or hangs, the test has failed and the client goes on."""

import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tfx_edge.device.errors import DeviceError
from tfx_edge.schemas.release import DeviceInfo

_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that say nothing of a model: memory is short, or the device is being switched off."""

_NOT_INSTALLED = ("ModuleNotFoundError", "ImportError", "No module named")


class InterruptedTestError(DeviceError):
    """A self-test that didn't come to its end: whether the model is at fault can't be told."""


def failure(folder: Path, seconds: float) -> str | None:
    """Why the model of a bundle isn't fit to run here; None where its golden outputs come out.

    Args:
        folder: the bundle's.
        seconds: a test that takes longer is ended.

    Raises:
        InterruptedTestError: it took longer, or was killed from outside.
        DeviceError: no test can be made here, whatever the model: LiteRT is missing, or there are no processes to be had.
    """
    command = [sys.executable, "-m", "tfx_edge.device.selftest", str(folder)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd="/", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise InterruptedTestError(f"self-test took longer than {seconds:g} s") from None
    except OSError as error:
        raise DeviceError(f"self-test: {sys.executable} can't be started: {error.strerror}") from error
    if run.returncode == 0:
        return None
    if -run.returncode in _FROM_OUTSIDE:
        raise InterruptedTestError(f"self-test was ended by {_signal(-run.returncode)}")
    if run.returncode < 0:
        return f"self-test crashed: {_signal(-run.returncode)}"
    if run.returncode == 2:
        failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
        return f"self-test {'; '.join(failed)}"[:900]
    last = (run.stderr.strip().splitlines() or ["no message"])[-1][:500]
    if any(missing in last for missing in _NOT_INSTALLED):
        raise DeviceError(f"self-test can't be made on this device: {last}; mend its installation of ai-edge-litert and numpy")
    return f"self-test: {last.removeprefix('error: ')}"


def platform(device: DeviceInfo) -> str:
    """What a self-test's result holds for: the device's target, TensorFlow Lite and LiteRT."""
    try:
        litert = version("ai-edge-litert")
    except PackageNotFoundError:
        litert = "unknown"
    return f"{device.target}, TensorFlow Lite {device.runtime}, LiteRT {litert}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

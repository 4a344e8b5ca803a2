"""The candidate's first load and run, in a child process: a damaged flatbuffer can kill its interpreter, or keep it busy for ever.

The process is started anew, not forked: a fork of a process with TensorFlow's and Beam's threads may hang by itself. It
imports no TensorFlow.
"""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert.inspect import minimum_runtime, runtime, runtime_supports
from tfx_edge.litert.runner import Runner

_MODEL, _FEATURES, _NAMES, _OUTCOME = "model.tflite", "features.npz", "names.json", "outcome.json"


class TrialFailure(RuntimeError):
    """The process failed for a reason that isn't the model's."""


def try_model(model: bytes, features: Mapping[str, NDArray[Any]], time_limit_s: float) -> str | None:
    """Loads a flatbuffer and predicts one batch in a process of its own.

    Args:
        model: the flatbuffer.
        features: a batch, `[n, ...]` each, by feature name; may hold more than the model takes.
        time_limit_s: seconds for the whole process.

    Returns:
        What is wrong with the model, in one line; None when nothing is.

    Raises:
        TrialFailure: the process failed for a reason that isn't the model's.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / _MODEL).write_bytes(model)
        # By number: a feature may be named as an argument of savez.
        np.savez(folder / _FEATURES, *(np.array(a.tolist(), "S") if a.dtype == object else a for a in features.values()))
        (folder / _NAMES).write_text(json.dumps(list(features)))
        # The folder as working directory: Python looks for modules there first, and must not find a caller's.
        command = [sys.executable, "-m", __name__, name]
        try:
            child = subprocess.run(command, cwd=name, timeout=time_limit_s, capture_output=True, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            return f"it didn't finish within {time_limit_s:g} s, {_doing(folder)}; export it again, or raise time_limit_s if it is slow"
        if child.returncode < 0:
            return (
                f"it killed the interpreter with {_signal(-child.returncode)}, {_doing(folder)}; the flatbuffer is damaged, export it again"
            )
        if child.returncode > 0:
            raise TrialFailure(f"the process that tries the candidate ended with status {child.returncode}:\n{child.stderr[-2000:]}")
        return _outcome(folder).get("fault")


def main(folder: Path) -> None:
    """What the child does: writes how far it came, or what is wrong with the model, to a file in the folder."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, Linux ends this process and not the pipeline
    model = (folder / _MODEL).read_bytes()
    with np.load(folder / _FEATURES) as arrays:
        features = dict(zip(json.loads((folder / _NAMES).read_text()), (_bytes_as_objects(arrays[k]) for k in arrays.files), strict=True))

    def note(**outcome: str) -> None:
        (folder / _OUTCOME).write_text(json.dumps(outcome))

    try:
        note(doing="reading its operators")
        needs = minimum_runtime(model)
        if not runtime_supports(needs):
            newer = "install a newer ai-edge-litert here and on the device"
            return note(fault=f"it needs the runtime of TensorFlow Lite {needs}, this is {runtime()}; {newer}")
        note(doing="loading")
        runner = Runner(model)
        note(doing=f"predicting {len(next(iter(features.values()), ()))} examples")
        runner(features)
        note()
    except Exception as error:  # noqa: BLE001 - whatever a flatbuffer makes these raise, it is the flatbuffer's fault
        note(fault=" ".join(str(error).split()) or type(error).__name__)


def _bytes_as_objects(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(object) if array.dtype.kind == "S" else array


def _outcome(folder: Path) -> dict[str, str]:
    outcome: dict[str, str] = json.loads((folder / _OUTCOME).read_text())
    return outcome


def _doing(folder: Path) -> str:
    return _outcome(folder)["doing"] if (folder / _OUTCOME).exists() else "starting"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))

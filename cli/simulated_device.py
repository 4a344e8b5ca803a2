"""A device on this machine that follows a channel, for the demo: the reference client in the environment that a device has."""

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas import EdgeError

VARIABLE = "TFX_EDGE_DEVICE_PYTHON"

_APP = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter

model, feature, examples = sys.argv[1:]
run = Interpreter(model).get_signature_runner()
print(*(int(next(iter(run(**{feature: example[None]}).values())).argmax()) for example in np.load(examples)))
"""
"""An app on the device: LiteRT and NumPy are all it needs."""


def device_python(environment: Mapping[str, str] = os.environ) -> Path:
    """A Python that the client runs in: the one that `TFX_EDGE_DEVICE_PYTHON` names, `device` inside the running environment, which the
    project's set-up makes, or the running one.

    Raises:
        EdgeError: the running one has too old a urllib3 for tuf's client, as TFX 1.16 asks for, and there is no other.
    """
    if environment.get(VARIABLE):
        return Path(environment[VARIABLE])
    own = Path(sys.prefix) / "device" / "bin" / "python"
    if own.exists():
        return own
    if int(importlib.metadata.version("urllib3").partition(".")[0]) >= 2:
        return Path(sys.executable)
    raise EdgeError(
        f"the device client needs urllib3 2, which this environment hasn't got; pip install 'tfx-edge[device]' in another one and name "
        f"its Python in {VARIABLE}"
    )


@dataclass(frozen=True)
class SimulatedDevice:
    """A device.

    Attributes:
        folder: of all it has.
    """

    folder: Path

    @classmethod
    def make(cls, folder: Path, channel: Path) -> "SimulatedDevice":
        """A device that was shipped with a channel's first root; one that is there already stays as it is.

        Args:
            folder: of the device.
            channel: folder of the channel.
        """
        folder.mkdir(parents=True, exist_ok=True)
        root, config = folder / "root.json", folder / "device.json"
        if not root.exists():
            root.write_bytes((channel / "metadata" / "1.root.json").read_bytes())
        facts = {"device_id": folder.name, "channel": channel.name, "source": str(channel), "root": root.name, "state": "state"}
        config.write_text(json.dumps(facts, indent=2) + "\n")
        return cls(folder)

    def run(self, action: str) -> str:
        """Runs the client.

        Args:
            action: of it.

        Returns:
            What it printed.

        Raises:
            EdgeError: it failed; the text is its own.
        """
        return self._python("-m", "tfx_edge.device", str(self.folder / "device.json"), action)

    def _python(self, *arguments: str) -> str:
        # What points the running Python to its packages would mislead another.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"}
        command = [str(device_python()), *arguments]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
            raise EdgeError(f"device {self.folder.name}: {said[-1].removeprefix('error: ')}")
        return done.stdout.strip()

    def classify(self, feature: str, values: NDArray[np.float32]) -> list[int]:
        """What an app on the device makes of examples, with the model that runs there.

        Args:
            feature: the model's only input, of float32.
            values: of it, `[n, ...]`.

        Returns:
            For each example the index of the largest output.

        Raises:
            EdgeError: there is no model, or it can't be run.
        """
        examples = self.folder / "examples.npy"
        np.save(examples, values)
        model = Path(self._python("-m", "tfx_edge.device", str(self.folder / "device.json"), "current")) / "tflite"
        return [int(answer) for answer in self._python("-c", _APP, str(model), feature, str(examples)).split()]

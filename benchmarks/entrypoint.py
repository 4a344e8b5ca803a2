"""From the start of a container to the executor's `Do`, against `import tensorflow`: what each task of the digits pipeline pays."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.figure import Figure, ratio
from tfx_edge.kubeflow.compile.compiler import compile_pipeline
from tfx_edge.pipelines.digits.data import write_examples
from tfx_edge.schemas import KubeflowConfig

_GOAL = 1.5

# Runs the real entry point and leaves it where it would call `Do`.
_UNTIL_DO = """
import os, sys
from tfx_edge.kubeflow.entrypoint import run
from tfx_edge.kubeflow.entrypoint.__main__ import main
made = run._executor
def stop(*arguments):
    made(*arguments)
    sys.stdout.write("Do")
    sys.stdout.flush()
    os._exit(0)
run._executor = stop
sys.exit(main(sys.argv[1:]))
"""
# Ends as the other side does: the interpreter's own end takes a second once TensorFlow is in, and is no part of a start.
_TENSORFLOW = "import os, tensorflow; os._exit(0)"


def figures() -> Iterator[Figure]:
    """Each task's start; both sides are processes of their own, and have compiled bytecode as in an image."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_examples(folder / "data")
        values = {"data": str(folder / "data"), "root": str(folder / "work")}
        spec = next(yaml.safe_load_all(compile_pipeline("tfx_edge.pipelines.digits:create_pipeline", KubeflowConfig(), image="none")))
        environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for task in spec["root"]["dag"]["tasks"]:
            yield _figure(spec, task, values, folder / "task", environment)


def _figure(spec: Mapping[str, Any], name: str, values: Mapping[str, str], folder: Path, environment: Mapping[str, str]) -> Figure:
    command = [sys.executable, "-c", _UNTIL_DO, *_arguments(spec, name, values, folder)]

    def task() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment)
        if done.stdout[-2:] != "Do":
            raise RuntimeError(f"{name}: ended before its Do: {done.stderr[-500:]}")

    return ratio(f"entrypoint.{name}", task, _import(environment), unit="x import tensorflow", goal=_GOAL, better="lower")


def _import(environment: Mapping[str, str]) -> Callable[[], object]:
    command = [sys.executable, "-c", _TENSORFLOW]
    return lambda: subprocess.run(command, check=True, capture_output=True, cwd="/", env=environment)


def _arguments(spec: Mapping[str, Any], name: str, values: Mapping[str, str], folder: Path) -> list[str]:
    """The entry point's arguments as the launcher leaves them; the inputs' files aren't there, since nothing before `Do` reads them."""
    task = spec["root"]["dag"]["tasks"][name]
    component = spec["components"][task["componentRef"]["name"]]
    container = spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
    inputs = task.get("inputs", {})
    message = {
        "inputs": {
            "artifacts": {key: _artifact(folder / key, number) for number, key in enumerate(inputs.get("artifacts", {}), 1)},
            "parameterValues": {key: _value(source, values) for key, source in inputs.get("parameters", {}).items()},
        },
        "outputs": {
            "artifacts": {key: _artifact(folder / key, 0) for key in component.get("outputDefinitions", {}).get("artifacts", {})},
            "outputFile": str(folder / "executor_output.json"),
        },
    }
    return [word.replace("{{$}}", json.dumps(message)) for word in container["args"]]


def _artifact(path: Path, number: int) -> dict[str, Any]:
    return {"artifacts": [{"name": str(number), "uri": str(path), "type": {"instanceSchema": ""}, "metadata": {}}]}


def _value(source: Mapping[str, Any], values: Mapping[str, str]) -> Any:
    return source["runtimeValue"]["constant"] if "runtimeValue" in source else values[source["componentInputParameter"]]

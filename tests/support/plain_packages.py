"""Packages of shell steps, without TFX, so that a run takes milliseconds: `write(path, {name: step(...)})`, or `runner(folder)(steps)`.

A step's script finds the executor input as `$1`; inputs are sources as `out`, `art` and `const` make them.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tfx_edge.kubeflow.local_run.run import Options, run_package
from tfx_edge.schemas import PackageRun

ARTIFACT = {"artifactType": {"schemaTitle": "system.Artifact", "schemaVersion": "0.0.1"}}
EXIT = "ALL_UPSTREAM_TASKS_COMPLETED"
IMAGE = "localhost/plain:1"
CACHED = {"cachingOptions": {"enableCache": True}}


def const(value: Any) -> dict[str, Any]:
    return {"runtimeValue": {"constant": value}}


def pipeline_input(name: str) -> dict[str, Any]:
    return {"componentInputParameter": name}


def out(task: str, key: str) -> dict[str, Any]:
    return {"taskOutputParameter": {"producerTask": task, "outputParameterKey": key}}


def art(task: str, key: str) -> dict[str, Any]:
    return {"taskOutputArtifact": {"producerTask": task, "outputArtifactKey": key}}


def step(
    script: str,
    *,
    inputs: dict[str, tuple[str, dict[str, Any]]] | None = None,
    artifacts: dict[str, dict[str, Any]] | None = None,
    writes: dict[str, str] | None = None,
    makes: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    image: str = IMAGE,
    command: list[str] | None = None,
    **task: Any,
) -> dict[str, Any]:
    """A container task: inputs are (type, source), `writes` types of output parameters, `makes` keys of output artifacts."""
    return {
        "task": {
            "inputs": {
                "parameters": {name: source for name, (_, source) in (inputs or {}).items()},
                "artifacts": dict(artifacts or {}),
            },
            **task,
        },
        "component": {
            "inputDefinitions": {
                "parameters": {name: {"parameterType": kind} for name, (kind, _) in (inputs or {}).items()},
                "artifacts": dict.fromkeys(artifacts or {}, ARTIFACT),
            },
            "outputDefinitions": {
                "parameters": {name: {"parameterType": kind} for name, kind in (writes or {}).items()},
                "artifacts": dict.fromkeys(makes, ARTIFACT),
            },
        },
        "executor": {
            "container": {
                "image": image,
                "command": command or ["sh", "-ec", script, "sh", "{{$}}"],
                "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
            }
        },
    }


def importer(uri: Any, *, metadata: dict[str, Any] | None = None, reimport: bool = False, title: str = "system.Artifact") -> dict[str, Any]:
    """An importer as the compiler writes it: `uri` a constant, or a source."""
    if isinstance(uri, str):
        address, parameters = {"constant": uri}, {"uri": const(uri)}
    else:
        address, parameters = {"runtimeParameter": "uri"}, {"uri": uri}
    kind = {"schemaTitle": title, "schemaVersion": "0.0.1"}
    return {
        "task": {"inputs": {"parameters": parameters}},
        "component": {
            "inputDefinitions": {"parameters": {"uri": {"parameterType": "STRING"}}},
            "outputDefinitions": {"artifacts": {"artifact": {"artifactType": kind}}},
        },
        "executor": {"importer": {"artifactUri": address, "typeSchema": kind, "metadata": metadata or {}, "reimport": reimport}},
    }


def says(output: str) -> str:
    """A script's piece that writes an executor output; `output` is JSON without a single quote."""
    return f"""printf %s '{output}' > "$(printf %s "$1" | sed 's/.*"outputFile":"\\([^"]*\\)".*/\\1/')"\n"""


def graph(
    steps: dict[str, dict[str, Any]],
    *,
    inputs: dict[str, tuple[str, dict[str, Any]]] | None = None,
    artifacts: dict[str, dict[str, Any]] | None = None,
    outputs: dict[str, Any] | None = None,
    writes: dict[str, str] | None = None,
    makes: tuple[str, ...] = (),
    **task: Any,
) -> dict[str, Any]:
    """A task that is a graph of tasks."""
    return {**step("", inputs=inputs, artifacts=artifacts, writes=writes, makes=makes, **task), "steps": steps, "outputs": outputs or {}}


def package(
    steps: dict[str, dict[str, Any]], *, parameters: dict[str, dict[str, Any]] | None = None, name: str = "plain"
) -> dict[str, Any]:
    """The PipelineSpec; parameters as its JSON has them."""
    spec: dict[str, Any] = {
        "schemaVersion": "2.1.0",
        "sdkVersion": "kfp-2.5.0",
        "pipelineInfo": {"name": name},
        "root": {"inputDefinitions": {"parameters": parameters or {}}, "dag": {}},
        "components": {},
        "deploymentSpec": {"executors": {}},
    }
    spec["root"]["dag"] = {"tasks": _tasks(steps, spec)}
    return spec


def _tasks(steps: dict[str, dict[str, Any]], spec: dict[str, Any]) -> dict[str, Any]:
    tasks = {}
    for name, made in copy.deepcopy(steps).items():
        component = made["component"]
        if "steps" in made:
            component["dag"] = {"tasks": _tasks(made["steps"], spec), "outputs": made["outputs"]}
        else:
            component["executorLabel"] = f"exec-{name}"
            spec["deploymentSpec"]["executors"][f"exec-{name}"] = made["executor"]
        spec["components"][f"comp-{name}"] = component
        tasks[name] = {"componentRef": {"name": f"comp-{name}"}, "taskInfo": {"name": name}, **made["task"]}
    return tasks


def write(path: Path, steps: dict[str, dict[str, Any]], *, platform: dict[str, Any] | None = None, **options: Any) -> Path:
    """Writes a package; `platform` is KubernetesExecutorConfig by task."""
    documents = [package(steps, **options)]
    if platform:
        executors = {f"exec-{name}": config for name, config in platform.items()}
        documents.append({"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}})
    path.write_text(yaml.safe_dump_all(documents))
    return path


def runner(folder: Path) -> Callable[..., PackageRun]:
    """Runs steps as processes: `runner(folder)(steps, given=...)` gives the record, which is what was written."""

    def run(
        steps: dict[str, dict[str, Any]],
        *,
        given: dict[str, str] | None = None,
        platform: dict[str, Any] | None = None,
        parameters: dict[str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> PackageRun:
        path = write(folder / "package.yaml", steps, platform=platform, parameters=parameters)
        record, file = run_package(path, Options(folder / "root", "host", given or {}, **options))
        assert PackageRun.from_json(file.read_text()) == record
        return record

    return run


def states(record: PackageRun) -> dict[str, str]:
    """The tasks' states."""
    return {name: task.state for name, task in record.tasks.items()}


def log(record: PackageRun, task: str) -> str:
    """What the last attempt of a task wrote to standard output and error."""
    file = record.tasks[task].log
    assert file is not None
    return Path(file).read_text()

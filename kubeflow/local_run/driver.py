"""What KFP's driver does before a container starts: inputs resolved, condition asked, outputs given addresses, cache asked.

Source: backend/src/v2/driver (resolve.go, container.go, cache.go) and cacheutils/cache.go of kubeflow/pipelines.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfx_edge.kubeflow.local_run import cel
from tfx_edge.kubeflow.local_run.metadata import Artifact, Outputs
from tfx_edge.kubeflow.local_run.places import PIPELINE_ROOT, Places
from tfx_edge.kubeflow.local_run.spec import ArtifactSource, ArtifactType, Component, Container, ParameterSource, Task
from tfx_edge.kubeflow.local_run.values import WrongType, checked, to_json

LOGS = "executor-logs"
_NO_VALUE = object()


class DriverError(Exception):
    """A task's inputs can't be resolved: KFP fails the task before its container starts."""


@dataclass(frozen=True)
class RunInfo:
    """What all tasks of a run share.

    Args:
        created: When the run began, ISO 8601.
    """

    pipeline: str
    run_id: str
    created: str


@dataclass(frozen=True)
class Ended:
    """How a task of the graph ended; outputs where it succeeded."""

    state: str
    reason: str
    outputs: Outputs | None


@dataclass(frozen=True)
class Inputs:
    """Resolved inputs, of a task or of a graph.

    Args:
        of_graph: Keys of artifacts that are a graph's own inputs: these reach a task without any type.
    """

    parameters: dict[str, Any]
    artifacts: dict[str, list[Artifact]]
    of_graph: frozenset[str] = frozenset()

    def message(self) -> dict[str, Any]:
        """The inputs of KFP's ExecutorInput, in its JSON form. Types are blank, as the backend hands them."""
        document: dict[str, Any] = {}
        if self.artifacts:
            document["artifacts"] = {
                key: {"artifacts": [_runtime_artifact(artifact, typed=key not in self.of_graph) for artifact in artifacts]}
                for key, artifacts in self.artifacts.items()
            }
        if self.parameters:
            document["parameterValues"] = self.parameters
        return document


def resolve(task: Task, component: Component, graph: Inputs, ended: Mapping[str, Ended], run: RunInfo) -> Inputs:
    """A task's inputs, from its graph's inputs and the outputs of the graph's other tasks.

    Raises:
        DriverError: an input isn't there, or has another type than declared.
    """
    specs = component.input_definitions.parameters
    parameters = {}
    for name, source in task.inputs.parameters.items():
        value = _parameter(name, source, task, graph, ended, run)
        if value is _NO_VALUE:  # an optional input of the pipeline that nobody gave
            if name in specs and specs[name].is_optional:
                continue
            raise DriverError(f"input {name}: no value")
        try:
            parameters[name] = checked(value, specs[name].parameter_type) if name in specs else value
        except WrongType as error:
            raise DriverError(f"input {name}: {error}") from None
    for name, spec in specs.items():
        if name not in parameters and not spec.is_optional and spec.default_value is None:
            raise DriverError(f"input {name}: neither value nor default")
    artifacts = {key: _artifacts(key, source, graph, ended) for key, source in task.inputs.artifacts.items()}
    of_graph = frozenset(key for key, source in task.inputs.artifacts.items() if source.component_input_artifact is not None)
    return Inputs(parameters, artifacts, of_graph)


def with_defaults(inputs: Inputs, component: Component) -> Inputs:
    """The launcher, and the driver of a graph, fill in the component's defaults."""
    defaults = {
        name: spec.default_value
        for name, spec in component.input_definitions.parameters.items()
        if name not in inputs.parameters and spec.default_value is not None
    }
    return Inputs({**defaults, **inputs.parameters}, inputs.artifacts, inputs.of_graph)


def triggers(condition: cel.Condition | None, inputs: Inputs) -> bool:
    """Whether a task's condition lets it run.

    Raises:
        DriverError: the condition can't be evaluated.
    """
    if condition is None:
        return True
    message = inputs.message()
    try:
        return condition.holds({"parameter_values": inputs.parameters, "artifacts": message.get("artifacts", {})})
    except cel.ConditionError as error:
        raise DriverError(f"condition {condition.text}: {error}") from None


def provide_outputs(name: str, component: Component, run: RunInfo, places: Places) -> dict[str, Any]:
    """The outputs of KFP's ExecutorInput: an address for each, below a folder that no other execution has."""
    folder = f"{PIPELINE_ROOT}/{run.pipeline}/{run.run_id}/{name}/{uuid.uuid4()}"
    definitions = component.output_definitions
    types: dict[str, tuple[ArtifactType, dict[str, Any]]] = {
        key: (spec.artifact_type, spec.metadata) for key, spec in definitions.artifacts.items()
    }
    types[LOGS] = (ArtifactType(schema_title="system.Artifact"), {})
    artifacts = {}
    for key, (type_, metadata) in types.items():
        artifact: dict[str, Any] = {"type": _type(type_), "uri": f"{folder}/{key}"}
        if metadata:
            artifact["metadata"] = metadata
        artifacts[key] = {"artifacts": [artifact]}
    outputs: dict[str, Any] = {"artifacts": artifacts, "outputFile": places.inside(f"{folder}/output_metadata.json")}
    if definitions.parameters:
        outputs["parameters"] = {key: {"outputFile": places.inside(f"{folder}/{key}")} for key in definitions.parameters}
    return outputs


def fingerprint(container: Container, component: Component, inputs: Inputs, outputs: dict[str, Any], claims: list[str]) -> str:
    """KFP's cache key: which artifacts and values go in, what comes out, and the container with its command.

    The environment is in it as on newer backends; older ones leave it out, although a variable may change what a component does.
    """
    key = {
        "inputArtifactNames": {name: [artifact.number for artifact in artifacts] for name, artifacts in inputs.artifacts.items()},
        "inputParameterValues": inputs.parameters,
        "outputArtifactsSpec": {
            name: {field: value for field, value in listed["artifacts"][0].items() if field != "uri"}
            for name, listed in outputs["artifacts"].items()
        },
        "outputParametersSpec": {name: spec.parameter_type for name, spec in component.output_definitions.parameters.items()},
        "containerSpec": {
            "image": container.image,
            "cmdArgs": [*container.command, *container.args],
            "pvcNames": sorted(set(claims)),
            "env": [[variable.name, variable.value] for variable in container.env],
        },
    }
    return hashlib.sha256(json.dumps(json.loads(to_json(key)), sort_keys=True).encode()).hexdigest()


def _parameter(name: str, source: ParameterSource, task: Task, graph: Inputs, ended: Mapping[str, Ended], run: RunInfo) -> Any:
    if source.component_input_parameter is not None:
        return graph.parameters.get(source.component_input_parameter, _NO_VALUE)
    if source.task_output_parameter is not None:
        output = source.task_output_parameter
        producer = ended[output.producer_task]
        if producer.outputs is None or output.output_parameter_key not in producer.outputs.parameters:
            raise DriverError(f"input {name}: task {output.producer_task} put out no parameter {output.output_parameter_key}")
        return producer.outputs.parameters[output.output_parameter_key]
    if source.task_final_status is not None:
        return _final_status(source.task_final_status.producer_task, ended, run)
    constant = source.runtime_value.constant if source.runtime_value is not None else None
    words = {
        "{{$.pipeline_job_name}}": run.run_id,
        "{{$.pipeline_job_resource_name}}": run.run_id,
        "{{$.pipeline_job_uuid}}": run.run_id,
        "{{$.pipeline_job_create_time_utc}}": run.created,
        "{{$.pipeline_job_schedule_time_utc}}": run.created,
        "{{$.pipeline_task_name}}": task.task_info.name,
    }
    if constant is None:
        return _NO_VALUE
    return words.get(constant, constant) if isinstance(constant, str) else constant


def _final_status(producer: str, ended: Mapping[str, Ended], run: RunInfo) -> dict[str, Any]:
    """What `dsl.PipelineTaskFinalStatus` is read from."""
    state, reason = ended[producer].state, ended[producer].reason
    failed = state not in {"SUCCEEDED", "CACHED", "SKIPPED"}
    return {
        "state": "SUCCEEDED" if state == "CACHED" else state,
        "pipelineJobResourceName": run.run_id,
        "pipelineTaskName": producer,
        "error": {"code": 2 if failed else 0, "message": reason if failed else ""},  # gRPC's UNKNOWN and OK
    }


def _artifacts(key: str, source: ArtifactSource, graph: Inputs, ended: Mapping[str, Ended]) -> list[Artifact]:
    if source.task_output_artifact is not None:
        output = source.task_output_artifact
        producer = ended[output.producer_task]
        if producer.outputs is None or output.output_artifact_key not in producer.outputs.artifacts:
            raise DriverError(f"input {key}: task {output.producer_task} put out no artifact {output.output_artifact_key}")
        return producer.outputs.artifacts[output.output_artifact_key]
    if source.component_input_artifact not in graph.artifacts:
        raise DriverError(f"input {key}: the graph has no artifact {source.component_input_artifact}")
    return graph.artifacts[source.component_input_artifact]


def _runtime_artifact(artifact: Artifact, *, typed: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"name": str(artifact.number), "uri": artifact.uri, "metadata": artifact.metadata}
    return {**document, "type": {"instanceSchema": ""}} if typed else document


def _type(type_: ArtifactType) -> dict[str, str]:
    fields = {"schemaTitle": type_.schema_title, "instanceSchema": type_.instance_schema, "schemaVersion": type_.schema_version}
    return {name: value for name, value in fields.items() if value}

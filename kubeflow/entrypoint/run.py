"""Driver, executor, executor output: what TFX's own container entry point does, for what open-source KFP hands over.

Source of the order and of the messages: tfx/orchestration/kubeflow/v2/container/kubeflow_v2_run_executor.py, which itself can't be
used: it takes the launcher's URIs for paths, writes the executor output in place, and names the models of TFX's own blessings alone.
"""

import importlib
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

from tfx_edge.kubeflow.entrypoint.parameters import as_declared
from tfx_edge.kubeflow.entrypoint.task import Task, renamed
from tfx_edge.observability import running
from tfx_edge.schemas import EdgeError, RunInfo


def run(task: Task) -> None:
    """Runs a task; its executor output is there, whole, when this returns, and not before.

    Raises:
        EdgeError: no such executor; and what driver and executor raise.
    """
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    message = task.executor_input
    file = message["outputs"]["outputFile"]
    _clear(task, file)
    if task.driver:
        _drive(task)
        message = _after_driver(message, json.loads(_read(file)))
        os.remove(file)
    executor_input = json_format.ParseDict(message, pipeline_spec_pb2.ExecutorInput(), ignore_unknown_fields=True)
    output = _execute(task, executor_input)
    for listed in output.get("artifacts", {}).values():
        for artifact in listed["artifacts"]:
            artifact["uri"] = task.remote.get(artifact["uri"], artifact["uri"])
            artifact["metadata"] = renamed(artifact.get("metadata", {}), task.remote)
    _write_whole(file, json.dumps(output, sort_keys=True))


def _clear(task: Task, file: str) -> None:
    """Makes the outputs' places, without what an attempt before this one left in them: Argo retries in the same volume."""
    for left in (file, _partial(file)):
        if os.path.exists(left):
            os.remove(left)
    shutil.rmtree(_scratch(file), ignore_errors=True)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    for key, listed in task.executor_input["outputs"].get("artifacts", {}).items():
        for artifact in listed["artifacts"]:
            uri = artifact["uri"]
            if "://" in uri:
                _clear_remote(uri)
                continue
            if os.path.isdir(uri) and not os.path.islink(uri):
                shutil.rmtree(uri)
            elif os.path.lexists(uri):
                os.remove(uri)
            os.makedirs(os.path.dirname(uri) if _is_value(task.output_types[key]) else uri, exist_ok=True)


def _clear_remote(uri: str) -> None:
    from tfx.dsl.io import fileio

    if fileio.exists(uri):
        fileio.rmtree(uri)
    fileio.makedirs(uri)


def _is_value(title: str) -> bool:
    """Whether artifacts of a type are a file, not a folder."""
    from tfx.types.value_artifact import ValueArtifact

    return issubclass(_type(title), ValueArtifact)


def _type(title: str) -> Any:
    from tfx.orchestration.kubeflow.v2.compiler_utils import TITLE_TO_CLASS_PATH
    from tfx.utils import import_utils

    return import_utils.import_class_by_path(TITLE_TO_CLASS_PATH.get(title, title))


def _drive(task: Task) -> None:
    driver = importlib.import_module(str(task.driver))
    arguments = ["--json_serialized_invocation_args", json.dumps(task.executor_input)]
    arguments += ["--json_serialized_inputs_spec_args", json.dumps(task.inputs_spec), *task.beam]
    driver.main(driver._parse_flags(["driver", *arguments]))


def _after_driver(message: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """The executor input with the parameters and the outputs' properties that the driver found; the places stay."""
    inputs, outputs = dict(message.get("inputs", {})), dict(message["outputs"])
    inputs["parameterValues"] = {**inputs.get("parameterValues", {}), **said.get("parameterValues", {})}
    found = {key: listed["artifacts"][0].get("metadata", {}) for key, listed in said.get("artifacts", {}).items()}
    outputs["artifacts"] = {
        key: {"artifacts": [{**a, "metadata": {**a.get("metadata", {}), **found.get(key, {})}} for a in listed["artifacts"]]}
        for key, listed in outputs.get("artifacts", {}).items()
    }
    return {**message, "inputs": inputs, "outputs": outputs}


def _execute(task: Task, executor_input: Any) -> dict[str, Any]:
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils as entrypoint
    from tfx.types import artifact_utils
    from tfx.types.value_artifact import ValueArtifact
    from tfx.version import __version__ as tfx_version

    spec = json_format.ParseDict(task.inputs_spec, pipeline_spec_pb2.ComponentInputsSpec(), ignore_unknown_fields=True)
    names: dict[int, str] = {}
    inputs = entrypoint.parse_raw_artifact_dict(executor_input.inputs.artifacts, names)
    outputs = entrypoint.parse_raw_artifact_dict(executor_input.outputs.artifacts, names)
    properties = entrypoint.parse_execution_properties(executor_input.inputs.parameter_values, {}, spec)
    for artifact in (artifact for artifacts in inputs.values() for artifact in artifacts):
        if isinstance(artifact, ValueArtifact):
            artifact.read()
    executor = _executor(task, executor_input)
    with running(RunInfo(pipeline=task.pipeline or None, run_id=task.run_id, component=task.component or None)):
        executor.Do(inputs, outputs, as_declared(executor, properties))
    for artifacts in outputs.values():
        for artifact in artifacts:
            artifact.set_string_custom_property(artifact_utils.ARTIFACT_TFX_VERSION_CUSTOM_PROPERTY_KEY, tfx_version)
            _name_models(artifact, names)
    output: dict[str, Any] = {
        "artifacts": {key: json_format.MessageToDict(v) for key, v in entrypoint.translate_executor_output(outputs, names).items()}
    }
    wanted = executor_input.outputs.parameters
    if wanted:
        output["parameterValues"] = {key: _value(outputs, key) for key in wanted}
    return output


def _executor(task: Task, executor_input: Any) -> Any:
    from tfx.dsl.components.base.base_executor import BaseExecutor
    from tfx.proto.orchestration import pipeline_pb2

    executor = _executor_class(task.executor)
    file = executor_input.outputs.output_file
    shared = {
        "unique_id": os.path.basename(os.path.dirname(file)),
        "tmp_dir": _scratch(file),
        "pipeline_run_id": task.run_id,
        "pipeline_info": pipeline_pb2.PipelineInfo(id=task.pipeline),
        "pipeline_node": pipeline_pb2.PipelineNode(node_info=pipeline_pb2.NodeInfo(id=task.component)),
    }
    if any(kind.__name__ == "BaseBeamExecutor" for kind in executor.__mro__):
        from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

        return executor(BaseBeamExecutor.Context(beam_pipeline_args=list(task.beam), **shared))
    return executor(BaseExecutor.Context(extra_flags=list(task.beam), **shared))


def _executor_class(path: str) -> Any:
    """The class; what its module itself does wrong keeps its traceback, which TFX's own function hides."""
    module, _, name = path.rpartition(".")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise EdgeError(f"executor {path}: not in this image ({error}); build the image with the package it is in") from error
    if not hasattr(found, name):
        raise EdgeError(f"executor {path}: {module} in this image has no {name}; build the image from the code that the package is of")
    return getattr(found, name)


def _name_models(artifact: Any, names: Mapping[int, str]) -> None:
    """A blessing refers to models by the ids that TFX made up for this process: KFP knows them by name."""
    for key in ("baseline_model_id", "current_model_id"):
        if artifact.has_custom_property(key) and artifact.get_int_custom_property(key) in names:
            artifact.set_string_custom_property(key, names[artifact.get_int_custom_property(key)])


def _value(outputs: Mapping[str, Any], key: str) -> Any:
    if key not in outputs:
        raise EdgeError(f"output parameter {key!r}: the component has no output artifact of this name to read it from")
    return outputs[key][0].read()


def _read(file: str) -> str:
    with open(file) as stream:
        return stream.read()


def _write_whole(file: str, text: str) -> None:
    with open(_partial(file), "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(_partial(file), file)


def _partial(file: str) -> str:
    return f"{file}.partial"


def _scratch(file: str) -> str:
    return os.path.join(os.path.dirname(file), ".temp")

"""What KFP's launcher does around a command: placeholders filled, folders made, outputs read and recorded.

Source: backend/src/v2/component/launcher_v2.go of kubeflow/pipelines.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from tfx_edge.kubeflow.local_run.driver import LOGS, Inputs
from tfx_edge.kubeflow.local_run.metadata import MetadataStore, Outputs
from tfx_edge.kubeflow.local_run.places import Places
from tfx_edge.kubeflow.local_run.spec import Component, Container
from tfx_edge.kubeflow.local_run.values import WrongType, from_text, to_json, to_text

# It writes the executor output last of all, so without one a task was cut off, whatever its exit status (a native library may end the
# process with 0). KFP can't know that and takes the empty outputs.
_ENTRYPOINT = "tfx_edge.kubeflow.entrypoint"


class LauncherError(Exception):
    """A command's outputs have no place, or can't be taken although it ended well: KFP fails the task."""


def fill(container: Container, inputs: Inputs, outputs: dict[str, Any], places: Places) -> tuple[str, ...]:
    """The command line, its placeholders replaced.

    `{{$}}` comes first, so that placeholders in the values of inputs are replaced too; as text, as the launcher does. (The
    launcher's own order is that of a Go map, another one each time.)
    """
    replaced = _placeholders(inputs, outputs, places)
    command = []
    for word in (*container.command, *container.args):
        for placeholder, value in replaced.items():
            word = word.replace(placeholder, value)
        command.append(word)
    return tuple(command)


def prepare(outputs: dict[str, Any], places: Places) -> Path:
    """Makes the folder of the outputs anew: each attempt starts with nothing in it, as a new pod does.

    Raises:
        LauncherError: it can't be made, or what an attempt before left there can't be removed.
    """
    folder = _folder(outputs, places)
    discard(outputs, places)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise LauncherError(f"no place for outputs: {error.filename}: {error.strerror}") from None
    return folder


def discard(outputs: dict[str, Any], places: Places) -> None:
    """Removes what an attempt wrote: outputs are there whole, or not at all."""
    shutil.rmtree(_folder(outputs, places), ignore_errors=True)


def collect(
    pipeline: str, component: Component, container: Container, outputs: dict[str, Any], places: Places, log: Path, store: MetadataStore
) -> Outputs:
    """Reads what the task says it put out, and records its artifacts.

    Raises:
        LauncherError: the output file isn't KFP's ExecutorOutput, or isn't there although the command is our entry point; or a
            declared parameter is missing or of another type.
    """
    folder = _folder(outputs, places)
    said = _output_file(folder / "output_metadata.json", must_exist=_ENTRYPOINT in container.command)
    parameters = {**said.get("parameterValues", {})}
    for name, spec in component.output_definitions.parameters.items():
        if name in parameters:
            continue
        try:
            parameters[name] = from_text((folder / name).read_text(), spec.parameter_type)
        except FileNotFoundError:
            raise LauncherError(f"output parameter {name} wasn't written") from None
        except OSError as error:
            raise LauncherError(f"output parameter {name}: {error.strerror}") from None
        except (WrongType, UnicodeDecodeError) as error:
            raise LauncherError(f"output parameter {name}: {error}") from None
    try:
        shutil.copyfile(log, folder / LOGS)
    except OSError as error:
        raise LauncherError(f"the log can't be stored: {error.filename}: {error.strerror}") from None
    artifacts = {}
    for key, listed in outputs["artifacts"].items():
        given = listed["artifacts"][0]
        stated = (said.get("artifacts", {}).get(key, {}).get("artifacts") or [{}])[0]
        uri = stated.get("uri") or given["uri"]
        type_ = given["type"].get("schemaTitle", "")
        metadata = {**given.get("metadata", {}), **stated.get("metadata", {})}
        artifacts[key] = [store.record(pipeline, key, uri, type_, metadata)]
    return Outputs(parameters, artifacts)


def _output_file(path: Path, *, must_exist: bool) -> dict[str, Any]:
    """The task's own words; one that isn't of ours needn't write any."""
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    try:
        document = json.loads(path.read_text())
        if not isinstance(document, dict):
            raise ValueError(f"a JSON object is expected, not {document!s:.100}")
        message = json_format.ParseDict(document, pipeline_spec_pb2.ExecutorOutput())
    except FileNotFoundError:
        if must_exist:
            raise LauncherError("ended without writing its executor output") from None
        return {}
    except (OSError, ValueError, json_format.ParseError) as error:
        raise LauncherError(f"the executor output isn't whole: {' '.join(str(error).split())}") from None
    said: dict[str, Any] = json_format.MessageToDict(message)
    return said


def _folder(outputs: dict[str, Any], places: Places) -> Path:
    folder = places.here(outputs["artifacts"][LOGS]["artifacts"][0]["uri"])
    if folder is None:
        raise AssertionError("outputs lie below the root")
    return folder.parent


def _placeholders(inputs: Inputs, outputs: dict[str, Any], places: Places) -> dict[str, str]:
    replaced = {"{{$}}": to_json({"inputs": inputs.message(), "outputs": outputs})}
    # Values that hold placeholders themselves come before those that fill them.
    for name, value in sorted(inputs.parameters.items(), key=lambda item: ("{{$" not in to_text(item[1]), item[0])):
        replaced[f"{{{{$.inputs.parameters['{name}']}}}}"] = to_text(value)
    uris = {f"inputs.artifacts['{key}']": artifacts[0].uri for key, artifacts in inputs.artifacts.items() if artifacts}
    uris |= {f"outputs.artifacts['{key}']": listed["artifacts"][0]["uri"] for key, listed in outputs["artifacts"].items()}
    for place, uri in uris.items():
        replaced[f"{{{{$.{place}.uri}}}}"] = uri
        path = places.inside(uri)
        if path is not None:
            replaced[f"{{{{$.{place}.path}}}}"] = path
    for name, output in outputs.get("parameters", {}).items():
        replaced[f"{{{{$.outputs.parameters['{name}'].output_file}}}}"] = output["outputFile"]
    return replaced

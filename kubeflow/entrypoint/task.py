"""The command line and KFP's executor input, made such as TFX's own code takes them."""

import argparse
import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tfx_edge.kubeflow.entrypoint.places import local_path
from tfx_edge.schemas import EdgeError

_LOGS = "executor-logs"  # an output of every task, for the launcher's own use
_NOTES = ("display_name", "store_session_info")  # the launcher's own notes among the properties, which no type of TFX knows
_PLACEHOLDER = re.compile(r"\{\{tfx_edge\.inputs\['([^']+)'\]\}\}")
_CHANNEL = "pipelinechannel--"


@dataclass(frozen=True)
class Task:
    """One execution.

    Attributes:
        executor: import path of the executor's class.
        driver: import path of the driver's module, or None.
        executor_input: KFP's ExecutorInput as JSON data: types restored, URIs as paths, placeholders replaced, no artifact of the
            launcher's own.
        inputs_spec: KFP's ComponentInputsSpec as JSON data: the parameters' types.
        output_types: type names of the outputs by key.
        remote: what the launcher calls the artifacts: URI by path.
        beam: arguments for Beam.
        pipeline: the pipeline's name.
        component: the component's id.
        run_id: the run's, as KFP counts; None where the artifacts' addresses don't tell.
    """

    executor: str
    driver: str | None
    executor_input: dict[str, Any]
    inputs_spec: dict[str, Any]
    output_types: Mapping[str, str]
    remote: Mapping[str, str]
    beam: tuple[str, ...]
    pipeline: str = ""
    component: str = ""
    run_id: str | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise EdgeError(f"entry point: {message}; it is called by packages that tfx-edge compile writes")


def read_task(arguments: Sequence[str]) -> Task:
    """Reads a command line.

    Raises:
        EdgeError: it isn't one that `tfx-edge compile` writes and KFP's launcher fills in.
    """
    parser = _Parser(prog="python -m tfx_edge.kubeflow.entrypoint", allow_abbrev=False)
    parser.add_argument("--artifact_types", required=True, help="JSON: type names of inputs and outputs by key.")
    parser.add_argument("--pipeline", default="", help="The pipeline's name.")
    parser.add_argument("--component", default="", help="The component's id.")
    parser.add_argument("--driver_module", help="Import path of a driver to run before the executor.")
    parser.add_argument("--executor_class_path", required=True, help="Import path of the executor's class.")
    parser.add_argument("--json_serialized_invocation_args", required=True, help="KFP's ExecutorInput, which the launcher fills in.")
    parser.add_argument("--json_serialized_inputs_spec_args", default="{}", help="KFP's ComponentInputsSpec.")
    known, beam = parser.parse_known_args(list(arguments))
    types = _json("--artifact_types", known.artifact_types)
    message, remote = prepared(_json("--json_serialized_invocation_args", known.json_serialized_invocation_args), types, beam)
    return Task(
        executor=known.executor_class_path,
        driver=known.driver_module,
        executor_input=message,
        inputs_spec=_json("--json_serialized_inputs_spec_args", known.json_serialized_inputs_spec_args),
        output_types=types.get("outputs", {}),
        remote=remote,
        beam=tuple(beam),
        pipeline=known.pipeline,
        component=known.component,
        run_id=_run_id(remote.values(), known.pipeline),
    )


def _run_id(addresses: Iterable[str], pipeline: str) -> str | None:
    """KFP tells a container nothing of its run, but the address of an output is ROOT/PIPELINE/RUN/TASK/EXECUTION/KEY; before KFP 2.5
    without EXECUTION. An input's may be of another run, but outputs come last.
    """
    for parts in (address.split("/") for address in reversed(tuple(addresses))):
        for place in (-5, -4):
            if pipeline and len(parts) >= -place and parts[place] == pipeline:
                return parts[place + 1]
    return None


def prepared(
    message: dict[str, Any], types: Mapping[str, Mapping[str, str]], beam: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """An executor input as TFX takes it, and the artifacts' URIs by path.

    Args:
        message: KFP's ExecutorInput as JSON data.
        types: `inputs` and `outputs`: type names by key.
        beam: Beam's arguments. Where its workers are elsewhere gs:// stays: they don't see this container, and TFX reads gs:// itself.

    Raises:
        EdgeError: an artifact whose type isn't told, or no place for the executor output.
    """
    message = copy.deepcopy(message)
    if not message.get("outputs", {}).get("outputFile"):
        raise EdgeError("entry point: the executor input names no outputFile; it is for KFP's launcher to fill in")
    remote: dict[str, str] = {}
    elsewhere = any(argument.startswith("--runner=") and argument != "--runner=DirectRunner" for argument in beam)
    for side in ("inputs", "outputs"):
        artifacts = message.get(side, {}).get("artifacts", {})
        artifacts.pop(_LOGS, None)
        for key, listed in artifacts.items():
            for artifact in listed.get("artifacts", ()):
                if key not in types.get(side, {}):
                    raise EdgeError(f"entry point: --artifact_types has no type for {side[:-1]} {key!r}; compile the package again")
                artifact["type"] = {"schemaTitle": types[side][key]}  # the launcher leaves it blank
                stays = elsewhere and artifact["uri"].startswith("gs://")
                path = artifact["uri"] if stays else artifact.pop("customPath", "") or local_path(artifact["uri"])
                remote[path] = artifact["uri"]
                artifact["uri"] = path
    paths = {uri: path for path, uri in remote.items()}
    for listed in message.get("inputs", {}).get("artifacts", {}).values():
        for artifact in listed.get("artifacts", ()):
            kept = {name: _unwrapped(value) for name, value in artifact.get("metadata", {}).items() if name not in _NOTES}
            artifact["metadata"] = renamed(kept, paths)
    message["outputs"]["outputFile"] = local_path(message["outputs"]["outputFile"])
    values = message.get("inputs", {}).get("parameterValues")
    if values:
        message["inputs"]["parameterValues"] = {name: _filled(v, values) for name, v in values.items() if not name.startswith(_CHANNEL)}
    return message, remote


def renamed(metadata: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Properties of an artifact that are another artifact's path or URI, as in a blessing, by the names that hold on the other side."""
    return {name: names.get(value, value) if isinstance(value, str) else value for name, value in metadata.items()}


def _unwrapped(value: Any) -> Any:
    """A property as the component wrote it: ML Metadata holds no lists, so the launcher puts them into a structure, and structures too."""
    if isinstance(value, dict) and set(value) in ({"list"}, {"struct"}):
        (value,) = value.values()
    return value


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """A text with inputs of the pipeline in it; where it is JSON they get into its texts, so that a quote in one doesn't end a text."""
    if not isinstance(value, str) or not _PLACEHOLDER.search(value):
        return value
    try:
        document = json.loads(value)
    except ValueError:
        return _PLACEHOLDER.sub(lambda match: _text(match[1], values), value)
    return json.dumps(_filled_parts(document, values))


def _filled_parts(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, values): _filled_parts(part, values) for key, part in value.items()}
    return [_filled_parts(part, values) for part in value] if isinstance(value, list) else _filled(value, values)


def _text(name: str, values: Mapping[str, Any]) -> str:
    found = values.get(_CHANNEL + name)
    if found is None:
        raise EdgeError(f"entry point: a parameter refers to input {name!r}, which the executor input hasn't; compile the package again")
    return found if isinstance(found, str) else json.dumps(found)


def _json(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise EdgeError(f"entry point: {option} isn't JSON ({error}); is the package run by KFP, or by tfx-edge run-package?") from None
    if not isinstance(value, dict):
        raise EdgeError(f"entry point: {option} is {text[:40]!r}; expected a JSON object")
    return value

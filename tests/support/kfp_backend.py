"""What KFP's driver and launcher hand to a container and take from it, for the tests; no code of it is shared with what it tests.

After backend/src/v2 of kubeflow/pipelines: component/launcher_v2.go (placeholders, folders, executor output merged into what was given),
metadata/converter.go (a number for a name, no booleans, lists and structures wrapped), driver/driver.go (inputs resolved, output URIs
made). Only what a plain chain of containers needs: no loops, conditions or cache, nothing uploaded.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from google.protobuf import json_format, struct_pb2

_SCHEMES = ("minio", "s3", "gs")
_FOLDERS = {"minio": "minio", "s3": "s3", "gs": "gcs"}
_NOTES = {"display_name": "x", "store_session_info": '{"Provider": "minio"}'}


@dataclass
class Backend:
    """One run of a package.

    Attributes:
        root: folder that stands for the containers' `/`: minio, s3 and gcs are in it.
        spec: the PipelineSpec as JSON data.
        parameters: inputs of the pipeline.
        made: artifacts by task and output.
    """

    root: Path
    spec: Mapping[str, Any]
    parameters: Mapping[str, Any]
    made: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def order(self) -> list[str]:
        """Task names, producers first."""
        tasks = self.spec["root"]["dag"]["tasks"]
        return list(TopologicalSorter({name: task.get("dependentTasks", ()) for name, task in tasks.items()}).static_order())

    def executor_input(self, name: str) -> dict[str, Any]:
        """The ExecutorInput of a task: each scheme, and each place of the output file, falls to every third and second one."""
        number = self.order().index(name)
        task = self.spec["root"]["dag"]["tasks"][name]
        component = self.spec["components"][task["componentRef"]["name"]]
        folder = f"{_SCHEMES[number % 3]}://bucket/v2/artifacts/digits/run-1/{name}/{number:04d}"
        inputs, outputs = task.get("inputs", {}), {}
        for key, artifact in component.get("outputDefinitions", {}).get("artifacts", {}).items():
            outputs[key] = {"artifacts": [{"name": key, "uri": f"{folder}/{key}", "type": artifact["artifactType"], "metadata": {}}]}
        outputs["executor-logs"] = {"artifacts": [{"uri": f"{folder}/executor-logs", "type": {"schemaTitle": "system.Artifact"}}]}
        places = (self.path(folder) / "output_metadata.json", self.root / "tmp" / name / "kfp_outputs" / "output_metadata.json")
        return {
            "inputs": {
                "parameterValues": {key: self._value(value) for key, value in inputs.get("parameters", {}).items()},
                "artifacts": {
                    key: {"artifacts": [self._input(value["taskOutputArtifact"])]} for key, value in inputs.get("artifacts", {}).items()
                },
            },
            "outputs": {"artifacts": outputs, "outputFile": str(places[number % 2])},
        }

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Runs a task's command as the launcher does, once the files' folders are there."""
        message = self.executor_input(name)
        container = self.spec["deploymentSpec"]["executors"][self._executor(name)]["container"]
        words = [word.replace("{{$}}", json.dumps(message)) for word in (*container["command"], *container["args"])]
        words[0] = sys.executable
        Path(message["outputs"]["outputFile"]).parent.mkdir(parents=True, exist_ok=True)
        path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"  # the user's own code, as an image would have it
        environment = {**os.environ, "TFX_EDGE_MOUNT_ROOT": str(self.root), "PYTHONPATH": path}
        done = subprocess.run(words, env=environment, cwd=self.root, capture_output=True, text=True)
        if done.returncode == 0:
            self.made[name] = self._taken(message["outputs"])
        return done

    def path(self, uri: str) -> Path:
        """Where a URI's file is on this machine."""
        scheme, _, key = uri.partition("://")
        return self.root / _FOLDERS[scheme] / key

    def _executor(self, name: str) -> str:
        component = self.spec["root"]["dag"]["tasks"][name]["componentRef"]["name"]
        return str(self.spec["components"][component]["executorLabel"])

    def _value(self, source: Mapping[str, Any]) -> Any:
        if "componentInputParameter" in source:
            return self.parameters[source["componentInputParameter"]]
        # Through Go's structpb.Value, whose only number is a double.
        return json_format.MessageToDict(json_format.ParseDict(source["runtimeValue"]["constant"], struct_pb2.Value()))

    def _input(self, source: Mapping[str, str]) -> dict[str, Any]:
        """From ML Metadata: a number for a name, no type's title."""
        number = (
            1
            + 100 * self.order().index(source["producerTask"])
            + sorted(self.made[source["producerTask"]]).index(source["outputArtifactKey"])
        )
        artifact = self.made[source["producerTask"]][source["outputArtifactKey"]]
        held = {name: _held(value) for name, value in artifact["metadata"].items()}
        return {**artifact, "name": str(number), "type": {"instanceSchema": ""}, "metadata": {**held, **_NOTES}}

    def _taken(self, outputs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What the launcher records: the executor's URI and properties over the driver's."""
        said = json.loads(Path(outputs["outputFile"]).read_text()).get("artifacts", {})
        taken = {}
        for key, listed in outputs["artifacts"].items():
            given, stated = listed["artifacts"][0], said.get(key, {"artifacts": [{}]})["artifacts"][0]
            metadata = {**given.get("metadata", {}), **stated.get("metadata", {})}
            taken[key] = {"uri": stated.get("uri") or given["uri"], "metadata": metadata, "type": given["type"]}
        return taken


def _held(value: Any) -> Any:
    """A property through ML Metadata, which has neither booleans nor lists."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return {"list": value}
    return {"struct": value} if isinstance(value, dict) else value

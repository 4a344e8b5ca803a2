"""What the container entry point makes of what KFP's launcher hands over: here in one process, with tiny components."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfx_edge.kubeflow.entrypoint.run import plain, run
from tfx_edge.kubeflow.entrypoint.task import prepared, read_task
from tfx_edge.schemas import EdgeError

REMOTE = "minio://bucket/run/say/7"


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFX_EDGE_MOUNT_ROOT", str(tmp_path))
    return tmp_path


def launched(executor: str, types: dict[str, Any], message: dict[str, Any], parameters: dict[str, str] | None = None) -> list[str]:
    """The command line as the launcher leaves it: blank input types, notes of its own, an output for its logs."""
    for listed in message.get("inputs", {}).get("artifacts", {}).values():
        for artifact in listed["artifacts"]:
            artifact |= {"type": {"instanceSchema": ""}}
            artifact["metadata"] = {**artifact.get("metadata", {}), "display_name": "x", "store_session_info": "{}"}
    outputs = message["outputs"].setdefault("artifacts", {})
    outputs["executor-logs"] = {"artifacts": [{"uri": f"{REMOTE}/executor-logs", "type": {"schemaTitle": "system.Artifact"}}]}
    spec = {"parameters": {name: {"parameterType": kind} for name, kind in (parameters or {}).items()}}
    return [
        "--artifact_types", json.dumps(types), "--executor_class_path", executor, "--json_serialized_invocation_args", json.dumps(message),
        "--json_serialized_inputs_spec_args", json.dumps(spec), "--runner=DirectRunner",
    ]  # fmt: skip


def say(output_file: str, values: dict[str, Any]) -> list[str]:
    model = {"name": "model", "type": {"schemaTitle": "tfx.Model"}, "uri": f"{REMOTE}/model"}
    message = {
        "inputs": {"parameterValues": values},
        "outputs": {"artifacts": {"model": {"artifacts": [model]}}, "outputFile": output_file},
    }
    return launched(
        "kubeflow_packages.Say_Executor",
        {"inputs": {}, "outputs": {"model": "tfx.Model"}},
        message,
        {"text": "STRING", "times": "NUMBER_INTEGER"},
    )


@pytest.mark.parametrize("place", ["{root}/minio/bucket/run/say/7/executor_output.json", "{root}/elsewhere/executor_output.json"])
def test_an_executor_runs_on_paths_and_its_output_names_the_launchers_uris(mount: Path, place: str) -> None:
    file = Path(place.format(root=mount))
    text = "{{$.inputs.parameters['pipelinechannel--word']}}!"
    run(read_task(say(str(file), {"text": text, "times": 2.0, "pipelinechannel--word": "hi"})))
    output = json.loads(file.read_text())
    [model] = output["artifacts"]["model"]["artifacts"]
    assert model["uri"] == f"{REMOTE}/model" and model["metadata"]["said"] == "hi!hi!" and "tfx_version" in model["metadata"]
    assert (mount / "minio/bucket/run/say/7/model").is_dir()
    assert os.listdir(file.parent).count("executor_output.json.partial") == 0


def test_an_attempt_finds_nothing_of_the_one_before_it(mount: Path) -> None:
    file = mount / "executor_output.json"
    left = mount / "minio/bucket/run/say/7/model/half"
    left.parent.mkdir(parents=True)
    left.write_text("x")
    file.write_text("{half")
    run(read_task(say(str(file), {"text": "a", "times": 1.0})))
    assert not left.exists() and json.loads(file.read_text())["artifacts"]


def test_a_failing_executor_leaves_no_output_file(mount: Path) -> None:
    file = mount / "executor_output.json"
    file.write_text("{}")
    with pytest.raises(ZeroDivisionError):
        run(read_task([*say(str(file), {"text": "a", "times": 1.0})[:3], "kubeflow_packages.Fails_Executor", *say(str(file), {})[4:]]))
    assert not file.exists()


def test_properties_come_back_with_their_types_and_without_the_launchers_notes(mount: Path) -> None:
    artifact = {"name": "17", "uri": "s3://b/examples", "metadata": {"span": 3.0, "split_names": '["a"]', "blessed": 1.0}}
    types = {"inputs": {"examples": "tfx.Examples"}, "outputs": {}}
    file = mount / "out" / "executor_output.json"
    message = {"inputs": {"artifacts": {"examples": {"artifacts": [artifact]}}}, "outputs": {"outputFile": str(file)}}
    import kubeflow_packages

    run(read_task(launched("kubeflow_packages.Inspect_Executor", types, message)))
    [seen] = kubeflow_packages.SEEN
    assert (seen.span, seen.split_names, seen.uri) == (3, '["a"]', f"{mount}/s3/b/examples")
    assert seen.get_int_custom_property("blessed") == 1 and not seen.has_custom_property("display_name")


def test_a_custom_path_wins_over_the_uri() -> None:
    artifact = {"uri": "gs://b/m", "customPath": "/somewhere/m"}
    message = {"outputs": {"artifacts": {"m": {"artifacts": [artifact]}}, "outputFile": "/o"}}
    made, remote = prepared(message, {"outputs": {"m": "tfx.Model"}})
    assert made["outputs"]["artifacts"]["m"]["artifacts"][0]["uri"] == "/somewhere/m" and remote == {"m": "gs://b/m"}


def test_lists_and_structures_are_pythons_own_and_whole_numbers_are_integers() -> None:
    from google.protobuf import json_format
    from google.protobuf.struct_pb2 import ListValue, Struct

    assert plain(json_format.ParseDict([1, 2.5, ["a", True]], ListValue())) == [1, 2.5, ["a", True]]
    found = plain(json_format.ParseDict({"a": 3, "b": {"c": None}}, Struct()))
    assert found == {"a": 3, "b": {"c": None}} and type(found["a"]) is int


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "the following arguments are required: --artifact_types"),
        (["--json_serialized_invocation_args", "{{$}}"], "isn't JSON"),
        (["--json_serialized_invocation_args", "[]"], "expected a JSON object"),
        (["--json_serialized_invocation_args", "{}"], "names no outputFile"),
        (
            ["--json_serialized_invocation_args", '{"inputs": {"artifacts": {"m": {"artifacts": [{}]}}}, "outputs": {"outputFile": "/o"}}'],
            "no type for input 'm'",
        ),
    ],
)
def test_a_command_line_of_another_kind_is_told_in_one_line(arguments: list[str], text: str) -> None:
    with pytest.raises(EdgeError, match=text):
        read_task(["--artifact_types", "{}", "--executor_class_path", "x.Y", *arguments] if arguments else [])


def test_the_module_ends_with_one_clear_line_and_imports_neither_tfx_nor_tensorflow_for_it(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "tfx_edge.kubeflow.entrypoint", "--artifact_types", "{"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 1 and len(lines) == 1 and lines[0].startswith("error: entry point: ")
    assert not any(f"| {name}\n" in done.stderr.replace("  ", "") for name in ("tensorflow", "tfx", "kfp"))


def test_an_executor_of_tfx_is_imported_without_the_components_beside_it(tmp_path: Path) -> None:
    code = """
import sys
from tfx_edge.kubeflow.entrypoint.light_imports import lighten
lighten()
import tfx.components.schema_gen.executor
print([name for name in ("tensorflow_model_analysis.api", "tfx.components.evaluator", "google.cloud.aiplatform") if name in sys.modules])
from tfx.components import SchemaGen
print(SchemaGen.__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "SchemaGen"]


def test_libraries_that_come_later_are_whole_when_asked_for(tmp_path: Path) -> None:
    code = """
import sys
from tfx_edge.kubeflow.entrypoint.light_imports import lighten
lighten()
from tfx.types import standard_component_specs
from tensorflow_model_analysis import sdk
early = sdk.EvalConfig
print("apache_beam" in sys.modules)
import tfx.components.statistics_gen.executor
import tensorflow_data_validation as tfdv
import tensorflow_model_analysis as tfma
print(tfdv.StatsOptions.__name__, sdk.EvalConfig is early, tfma.VERSION_STRING == sdk.VERSION_STRING)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "StatsOptions True True"]

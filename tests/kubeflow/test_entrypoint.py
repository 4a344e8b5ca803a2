"""What the container entry point makes of what KFP's launcher hands over: here in one process, with tiny components."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubeflow_packages
import pytest
import tensorflow as tf
from google.protobuf import json_format
from google.protobuf.struct_pb2 import ListValue, Struct
from tfx.components.example_gen.import_example_gen.component import ImportExampleGen
from tfx.proto import example_gen_pb2

from tfx_edge.kubeflow.entrypoint import __main__
from tfx_edge.kubeflow.entrypoint.parameters import plain
from tfx_edge.kubeflow.entrypoint.run import run
from tfx_edge.kubeflow.entrypoint.task import prepared, read_task
from tfx_edge.schemas import EdgeError

SUPPORT = Path(__file__).parent.parent / "support"
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


def makes_model(executor: str, output_file: Path, values: dict[str, Any], parameters: dict[str, str]) -> list[str]:
    model = {"name": "model", "type": {"schemaTitle": "tfx.Model"}, "uri": f"{REMOTE}/model"}
    message = {
        "inputs": {"parameterValues": values},
        "outputs": {"artifacts": {"model": {"artifacts": [model]}}, "outputFile": str(output_file)},
    }
    return launched(executor, {"inputs": {}, "outputs": {"model": "tfx.Model"}}, message, parameters)


def say(output_file: Path, values: dict[str, Any]) -> list[str]:
    return makes_model("kubeflow_packages.Say_Executor", output_file, values, {"text": "STRING", "times": "NUMBER_INTEGER"})


def ran(arguments: list[str]) -> dict[str, Any]:
    """What a task put out."""
    task = read_task(arguments)
    run(task)
    output: dict[str, Any] = json.loads(Path(task.executor_input["outputs"]["outputFile"]).read_text())
    return output


@pytest.mark.parametrize("place", ["{root}/minio/bucket/run/say/7/executor_output.json", "{root}/elsewhere/executor_output.json"])
def test_an_executor_runs_on_paths_and_its_output_names_the_launchers_uris(mount: Path, place: str) -> None:
    file = Path(place.format(root=mount))
    text = "{{tfx_edge.inputs['word']}}!"
    output = ran(say(file, {"text": text, "times": 2.0, "pipelinechannel--word": "hi"}))
    [model] = output["artifacts"]["model"]["artifacts"]
    assert model["uri"] == f"{REMOTE}/model" and model["metadata"]["said"] == "hi!hi!" and "tfx_version" in model["metadata"]
    assert (mount / "minio/bucket/run/say/7/model").is_dir()
    assert os.listdir(file.parent).count("executor_output.json.partial") == 0


def test_a_function_component_gets_what_its_annotations_say_and_other_components_values(mount: Path) -> None:
    file = mount / "take" / "executor_output.json"
    values = {"numbers": "[1, 2]", "names": '{"a": 1}', "sure": 0.0, "word": "[1]"}
    kinds = {"numbers": "STRING", "names": "STRING", "sure": "NUMBER_INTEGER", "word": "STRING"}
    (mount / "s3/b").mkdir(parents=True)
    (mount / "s3/b/total").write_text("7")
    total = {"artifacts": [{"name": "3", "uri": "s3://b/total"}]}
    model = {"artifacts": [{"name": "model", "type": {"schemaTitle": "tfx.Model"}, "uri": f"{REMOTE}/model"}]}
    message = {
        "inputs": {"parameterValues": values, "artifacts": {"total": total}},
        "outputs": {"artifacts": {"model": model}, "outputFile": str(file)},
    }
    types = {"inputs": {"total": "tfx.Integer"}, "outputs": {"model": "tfx.Model"}}
    output = ran(launched("entrypoint_executors.Take_Executor", types, message, kinds))
    assert output["artifacts"]["model"]["artifacts"][0]["metadata"]["took"] == "(7, [1, 2], {'a': 1}, False, '[1]', None)"


@pytest.mark.parametrize("value", ['v"1', "a\\b", "plain", "two\nlines"])
def test_an_input_within_a_text_stays_as_it_is_also_where_the_text_is_json(mount: Path, value: str) -> None:
    file = mount / "say" / "executor_output.json"
    for text, expected in (
        ("{{tfx_edge.inputs['word']}}/x", f"{value}/x"),
        ('{"a": ["{{tfx_edge.inputs[\'word\']}}"]}', json.dumps({"a": [value]})),
    ):
        [model] = ran(say(file, {"text": text, "times": 1.0, "pipelinechannel--word": value}))["artifacts"]["model"]["artifacts"]
        assert model["metadata"]["said"] == expected


def test_a_component_that_leaves_by_sys_exit_failed(mount: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = mount / "leave" / "executor_output.json"
    assert __main__.main(makes_model("entrypoint_executors.Leave", file, {}, {})) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: the component ended the process by sys.exit(0); raise an error instead"
    assert not file.exists()


def test_an_attempt_finds_nothing_of_the_one_before_it(mount: Path) -> None:
    file = mount / "executor_output.json"
    left = mount / "minio/bucket/run/say/7/model/half"
    left.parent.mkdir(parents=True)
    left.write_text("x")
    file.write_text("{half")
    assert ran(say(file, {"text": "a", "times": 1.0}))["artifacts"]
    assert not left.exists()


def test_a_task_that_dies_midway_leaves_no_output_file_and_the_next_attempt_nothing_of_it(mount: Path) -> None:
    file = mount / "executor_output.json"
    file.write_text("{}")
    model = mount / "minio/bucket/run/say/7/model"

    def attempt(go_on: float) -> list[str]:
        return makes_model("entrypoint_executors.Hang", file, {"go_on": go_on}, {"go_on": "NUMBER_INTEGER"})

    command = [sys.executable, "-m", "tfx_edge.kubeflow.entrypoint", *attempt(0.0)]
    environment = {**os.environ, "PYTHONPATH": f"{SUPPORT}:{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(command, cwd=mount, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "halfway\n"
        process.kill()
    assert (model / "half").exists() and not file.exists()
    assert ran(attempt(1.0))["artifacts"]["model"]["artifacts"][0]["uri"] == f"{REMOTE}/model"
    assert sorted(os.listdir(model)) == ["first", "second"]


@pytest.mark.parametrize(
    ("executor", "last", "traced"),
    [
        ("entrypoint_executors.Refuse", "error: label_key 'x': no such feature", False),
        ("entrypoint_executors.Break", "error: ValueError: two lines", True),
        (
            "entrypoint_executors.Missing",
            "error: executor entrypoint_executors.Missing: entrypoint_executors in this image has no Missing; "
            "build the image from the code that the package is of",
            False,
        ),
        (
            "missing_module.Executor",
            "error: executor missing_module.Executor: not in this image (No module named 'missing_module'); "
            "build the image with the package it is in",
            False,
        ),
    ],
)
def test_a_users_mistake_is_one_line_and_any_other_failure_keeps_its_traceback(
    mount: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, executor: str, last: str, traced: bool
) -> None:
    monkeypatch.setattr(__main__, "lighten", lambda: None)  # it is for a process of its own, and this one has TFX already
    file = mount / "executor_output.json"
    file.write_text("{}")
    assert __main__.main(makes_model(executor, file, {}, {})) == 1
    lines = capfd.readouterr().err.splitlines()
    assert lines[-1] == last and ("Traceback (most recent call last):" in lines) == traced
    assert not file.exists()


def test_a_property_that_is_an_artifacts_path_is_its_uri_outside(mount: Path) -> None:
    blessing = {"name": "blessing", "type": {"schemaTitle": "tfx.ModelBlessing"}, "uri": f"{REMOTE}/blessing"}
    model = {"name": "5", "uri": "s3://b/model"}
    message = {
        "inputs": {"artifacts": {"model": {"artifacts": [model]}}},
        "outputs": {"artifacts": {"blessing": {"artifacts": [blessing]}}, "outputFile": str(mount / "executor_output.json")},
    }
    types = {"inputs": {"model": "tfx.Model"}, "outputs": {"blessing": "tfx.ModelBlessing"}}
    [made] = ran(launched("entrypoint_executors.Bless", types, message))["artifacts"]["blessing"]["artifacts"]
    assert made["metadata"]["current_model"] == "s3://b/model" and made["metadata"]["note"] == f"{mount}/s3/b/model/part"
    assert made["metadata"]["sizes"] == [1, 2]

    # and on the way in it is the path again, whatever order they come in
    inputs = {"blessing": {"artifacts": [{**made, "name": "6"}]}, "model": {"artifacts": [model]}}
    message = {"inputs": {"artifacts": inputs}, "outputs": {"outputFile": "/o"}}
    read, _ = prepared(message, {"inputs": {"blessing": "tfx.ModelBlessing", "model": "tfx.Model"}})
    assert read["inputs"]["artifacts"]["blessing"]["artifacts"][0]["metadata"]["current_model"] == f"{mount}/s3/b/model"


def test_properties_come_back_with_their_types_and_without_the_launchers_notes(mount: Path) -> None:
    # ML Metadata has no lists: KFP wraps them
    custom = {"blessed": 1.0, "sizes": {"list": [1.0, 2.0]}, "made": {"struct": {"list": "x"}}}
    artifact = {"name": "17", "uri": "s3://b/examples", "metadata": {"span": 3.0, "split_names": '["a"]', **custom}}
    types = {"inputs": {"examples": "tfx.Examples"}, "outputs": {}}
    file = mount / "out" / "executor_output.json"
    message = {"inputs": {"artifacts": {"examples": {"artifacts": [artifact]}}}, "outputs": {"outputFile": str(file)}}
    run(read_task(launched("kubeflow_packages.Inspect_Executor", types, message)))
    [seen] = kubeflow_packages.SEEN
    assert (seen.span, seen.split_names, seen.uri) == (3, '["a"]', f"{mount}/s3/b/examples")
    assert seen.get_int_custom_property("blessed") == 1 and not seen.has_custom_property("display_name")
    assert seen.get_json_value_custom_property("sizes") == [1, 2] and seen.get_json_value_custom_property("made") == {"list": "x"}


def test_the_span_that_a_driver_finds_reaches_the_component_behind(mount: Path) -> None:
    for span in (1, 12):
        (mount / f"data/span-{span}").mkdir(parents=True)
        with tf.io.TFRecordWriter(str(mount / f"data/span-{span}/all")) as writer:
            writer.write(tf.train.Example().SerializeToString())
    splits = [example_gen_pb2.Input.Split(name="all", pattern="span-{SPAN}/*")]
    generator = ImportExampleGen(input_base=str(mount / "data"), input_config=example_gen_pb2.Input(splits=splits))
    values = {key: value for key, value in generator.exec_properties.items() if value is not None}
    examples = {"name": "examples", "type": {"schemaTitle": "tfx.Examples"}, "uri": "s3://b/examples"}
    outputs = {"artifacts": {"examples": {"artifacts": [examples]}}, "outputFile": str(mount / "made/executor_output.json")}
    arguments = launched(
        "tfx.components.example_gen.import_example_gen.executor.Executor",
        {"inputs": {}, "outputs": {"examples": "tfx.Examples"}},
        {"inputs": {"parameterValues": values}, "outputs": outputs},
        {name: "NUMBER_INTEGER" if isinstance(value, int) else "STRING" for name, value in values.items()},
    )
    arguments += ["--driver_module", "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver", "--direct_running_mode=in_memory"]
    [made] = ran(arguments)["artifacts"]["examples"]["artifacts"]
    assert sorted(os.listdir(mount / "s3/b/examples/Split-train")) != []
    message = {
        "inputs": {"artifacts": {"examples": {"artifacts": [{**made, "name": "3"}]}}},
        "outputs": {"outputFile": str(mount / "seen/executor_output.json")},
    }
    ran(launched("kubeflow_packages.Inspect_Executor", {"inputs": {"examples": "tfx.Examples"}, "outputs": {}}, message))
    [seen] = kubeflow_packages.SEEN
    assert seen.get_int_custom_property("span") == 12 and "num_files:1" in seen.get_string_custom_property("input_fingerprint")


def test_a_custom_path_wins_over_the_uri() -> None:
    artifact = {"uri": "gs://b/m", "customPath": "/somewhere/m"}
    message = {"outputs": {"artifacts": {"m": {"artifacts": [artifact]}}, "outputFile": "/o"}}
    made, remote = prepared(message, {"outputs": {"m": "tfx.Model"}})
    assert made["outputs"]["artifacts"]["m"]["artifacts"][0]["uri"] == "/somewhere/m" and remote == {"/somewhere/m": "gs://b/m"}


@pytest.mark.parametrize(
    ("beam", "place"),
    [
        (["--runner=DirectRunner"], "/gcs/b/m"),
        ([], "/gcs/b/m"),
        (["--runner=DataflowRunner"], "gs://b/m"),
        (["--runner=PortableRunner"], "gs://b/m"),
    ],
)
def test_cloud_storage_stays_a_uri_where_beams_workers_are_elsewhere(beam: list[str], place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFX_EDGE_MOUNT_ROOT", raising=False)
    message = {"outputs": {"artifacts": {"m": {"artifacts": [{"uri": "gs://b/m"}]}}, "outputFile": "/o"}}
    made, remote = prepared(message, {"outputs": {"m": "tfx.Model"}}, beam)
    assert made["outputs"]["artifacts"]["m"]["artifacts"][0]["uri"] == place and remote == {place: "gs://b/m"}


def test_lists_and_structures_are_pythons_own_and_whole_numbers_are_integers() -> None:
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


def test_log_lines_of_any_component_name_pipeline_run_and_component_as_json(mount: Path) -> None:
    model = {"name": "model", "type": {"schemaTitle": "tfx.Model"}, "uri": "minio://bucket/root/digits/run-12/say/0f0f/model"}
    message = {
        "inputs": {"parameterValues": {}},
        "outputs": {"artifacts": {"model": {"artifacts": [model]}}, "outputFile": str(mount / "executor_output.json")},
    }
    arguments = launched("entrypoint_executors.Talk", {"inputs": {}, "outputs": {"model": "tfx.Model"}}, message)
    command = [sys.executable, "-m", "tfx_edge.kubeflow.entrypoint", "--pipeline=digits", "--component=Talker", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{SUPPORT}:{os.environ.get('PYTHONPATH', '')}", "TFX_EDGE_LOG": "json"}
    done = subprocess.run(command, cwd=mount, env=environment, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    said = {line["message"]: line for line in lines if line["message"].startswith("said by")}
    assert set(said) == {"said by absl", "said by logging", "said by the Trainer's user in a thread"}
    for line in said.values():
        assert (line["pipeline"], line["run_id"], line["component"]) == ("digits", "run-12", "Talker")


@pytest.mark.parametrize(
    ("address", "run_id"),
    [
        ("minio://bucket/digits/root/digits/run-1/say/0f0f/model", "run-1"),
        ("s3://bucket/digits/run-1/say/model", "run-1"),
        ("/somewhere/else/of/digits", None),
        ("gs://digits/model", None),
    ],
)
def test_the_runs_id_is_read_from_the_outputs_addresses(mount: Path, address: str, run_id: str | None) -> None:
    model = {"name": "model", "type": {"schemaTitle": "tfx.Model"}, "uri": address}
    message = {"inputs": {}, "outputs": {"artifacts": {"model": {"artifacts": [model]}}, "outputFile": str(mount / "o.json")}}
    arguments = launched("entrypoint_executors.Talk", {"inputs": {}, "outputs": {"model": "tfx.Model"}}, message)
    assert read_task(["--pipeline=digits", *arguments]).run_id == run_id

"""`tfx-edge quantize`, `validate` and `doctor`: the suite's work on files, without a pipeline."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gate_data
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from click.testing import CliRunner
from example_shards import example, write_shards

from tfx_edge.cli import cli
from tfx_edge.device.selftest import selftest_bundle
from tfx_edge.pipelines.standalone.schema import infer_schema
from tfx_edge.schemas import EdgeError, GateReport, Manifest


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [Path(sys.executable).with_name("tfx-edge"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel, `train` and `eval` examples in two shards each, and a bundle of it made by the command."""
    folder = tmp_path_factory.mktemp("work")
    data = gate_data.examples(600)
    model = gate_data.train(data)
    model.save(folder / "saved_model", save_format="tf")
    for name, part in (("train", slice(0, 400)), ("eval", slice(400, 600))):
        rows = range(*part.indices(600))
        records = [example({"x": data["x"][i].tolist(), "label": [int(data["label"][i])], "city": [bytes(data["city"][i])]}) for i in rows]
        write_shards(folder / name, [records[::2], records[1::2]])
    made = run("quantize", folder / "saved_model", "--examples", folder / "train", "-o", folder / "bundle", "--name", "cities")
    assert made.returncode == 0, made.stdout + made.stderr
    assert "int8" in made.stdout and made.stderr == ""
    return folder


JUDGED = ("--label", "label", "--max-drop", "0.05")


def test_a_bundle_made_without_a_pipeline_is_whole_and_passes_its_self_test(work: Path) -> None:
    manifest = Manifest.from_json((work / "bundle" / "edge" / "manifest.json").read_bytes())
    assert manifest.scheme == "int8" and manifest.name == "cities"
    assert all(output.passed for output in selftest_bundle(work / "bundle"))
    assert not [path for path in work.iterdir() if path.name.startswith(".")], "nothing half-made is left"


def test_the_same_files_give_the_same_flatbuffer(work: Path, tmp_path: Path) -> None:
    again = run("quantize", work / "saved_model", "--examples", work / "train", "-o", tmp_path / "bundle", "--name", "cities", "--json")
    assert again.returncode == 0
    assert Manifest.from_json(again.stdout).digest == Manifest.from_json((work / "bundle" / "edge" / "manifest.json").read_bytes()).digest


def test_a_good_model_is_blessed_and_the_accuracy_is_that_of_a_plain_loop(work: Path, tmp_path: Path) -> None:
    judged = run(
        "validate", work / "bundle", "--baseline", work / "saved_model", "--examples", work / "eval" / "*.gz", *JUDGED,
        "--slice", "city", "--report", tmp_path / "report.json", "--html", tmp_path / "report.html",
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert judged.stdout.splitlines()[-1] == "verdict: BLESSED" and judged.stderr == ""
    report = GateReport.from_json((tmp_path / "report.json").read_bytes())
    assert report.blessed and len(report.metrics) == 4
    page = (tmp_path / "report.html").read_text()
    assert "city=oslo" in page and "Worst disagreements" in page and "Lineage: this is a gate&#39;s report alone" in page
    data = gate_data.examples(600)
    runner = Interpreter(str(work / "bundle" / "Format-Serving" / "tflite")).get_signature_runner()
    predictions = [int(next(iter(runner(x=row[None]).values())).argmax()) for row in data["x"][400:]]
    overall = next(metric for metric in report.metrics if metric.slice == "Overall")
    assert overall.candidate == pytest.approx(np.mean(predictions == data["label"][400:]))


def test_what_was_quantized_and_validated_can_be_published(work: Path, tmp_path: Path) -> None:
    options = ("--baseline", work / "saved_model", "--examples", work / "eval", *JUDGED)
    assert run("validate", work / "bundle", *options, "--report", tmp_path / "report.json").returncode == 0
    keyring = ("--keyring", tmp_path / "keys" / "keyring.json")
    assert run("channel", "init", tmp_path / "channels", *keyring).returncode == 0
    published = run("channel", "publish", tmp_path / "channels", "canary", work / "bundle", "--report", tmp_path / "report.json", *keyring)
    assert published.returncode == 0 and "release 1 published" in published.stdout, published.stderr


def test_a_model_made_elsewhere_and_damaged_is_not_blessed_with_exit_status_2(work: Path, tmp_path: Path) -> None:
    damaged = gate_data.shuffled_weights((work / "bundle" / "Format-Serving" / "tflite").read_bytes())
    (tmp_path / "model.tflite").write_bytes(damaged)
    options = ("--baseline", work / "saved_model", "--examples", work / "eval", *JUDGED)
    judged = run("validate", tmp_path / "model.tflite", *options, "--json")
    assert judged.returncode == 2
    report = GateReport.from_json(judged.stdout)
    assert not report.blessed and any("SparseCategoricalAccuracy" in reason for reason in report.reasons)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("validate", "nowhere.tflite", "--baseline", "{w}/saved_model", "--examples", "{w}/eval", *JUDGED), "nowhere.tflite: no such file"),
        (("validate", "{w}/bundle", "--baseline", "{w}/train", "--examples", "{w}/eval", *JUDGED), "no saved_model.pb in it"),
        (("validate", "{w}/bundle", "--baseline", "{w}/saved_model", "--examples", "{w}/none.gz", *JUDGED), "none.gz: no such file"),
        (("validate", "{w}/bundle", "--baseline", "{w}/saved_model", "--examples", "{w}/eval", "--label", "label"), "has no bound"),
        (("quantize", "{w}/saved_model", "--examples", "{w}/train", "-o", "{w}/bundle"), "is there already"),
        (("quantize", "{w}/saved_model", "--examples", "{w}/train", "-o", "{w}/b", "--accuracy-target", "0.01"), "give --label, and --held-out"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_files_is_one_line(work: Path, arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(cli, [part.format(w=work) for part in arguments])
    assert isinstance(result.exception, EdgeError), result.output
    assert said in str(result.exception) and "\n" not in str(result.exception)


def test_a_schema_is_told_from_the_records(tmp_path: Path) -> None:
    rows = [{"image": [0.0] * 4, "label": [1], "name": [b"a"], "some": [1.0] * i, "pair": [1, 2]} for i in (1, 2)]
    write_shards(tmp_path / "data", [[example(row) for row in rows]])
    [file] = (tmp_path / "data").iterdir()
    found = {feature.name: feature for feature in infer_schema([file], {"image": (2, 2), "pair": (3,)}).feature}
    assert [dim.size for dim in found["image"].shape.dim] == [2, 2] and [dim.size for dim in found["pair"].shape.dim] == [2]
    assert found["label"].HasField("shape") and not found["label"].shape.dim and not found["some"].HasField("shape")
    (tmp_path / "no.tfrecord").write_bytes(b"no records at all, but text")
    with pytest.raises(EdgeError, match="no TFRecord file of tf.Examples"):
        infer_schema([tmp_path / "no.tfrecord"], {})
    with tf.io.TFRecordWriter(str(tmp_path / "empty")):
        pass
    with pytest.raises(EdgeError, match="no records"):
        infer_schema([tmp_path / "empty"], {})


def test_the_doctor_finds_this_machine_fit_and_says_what_keras_mode_breaks() -> None:
    command = [Path(sys.executable).with_name("tfx-edge"), "doctor", "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    states = {finding["what"]: finding["state"] for finding in json.loads(found.stdout)}
    assert found.returncode == 0 and {states[what] for what in ("python", "litert", "tfx", "keras")} == {"ok"}
    broken = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "TF_USE_LEGACY_KERAS": "0"})
    [keras] = [finding for finding in json.loads(broken.stdout) if finding["what"] == "keras"]
    assert broken.returncode == 1 and keras["state"] == "wrong" and "TF_USE_LEGACY_KERAS=1" in keras["fix"]


def test_two_models_are_compared_by_what_their_manifests_say(work: Path, tmp_path: Path) -> None:
    manifest = Manifest.from_json((work / "bundle" / "edge" / "manifest.json").read_bytes())
    other = manifest.model_copy(update={"scheme": "float32", "size_bytes": manifest.size_bytes * 2, "operators": {"ADD": 1}})
    (tmp_path / "manifest.json").write_text(other.to_json())
    said = CliRunner().invoke(cli, ["compare", str(work / "bundle"), str(tmp_path / "manifest.json")]).output.splitlines()
    assert "scheme: int8 -> float32" in said and "operators.ADD: 0 -> 1" in said
    assert f"size_bytes: {manifest.size_bytes:,} -> {other.size_bytes:,} (2.00 times)" in said
    same = CliRunner().invoke(cli, ["compare", str(work / "bundle"), str(work / "bundle"), "--json"])
    assert json.loads(same.output) == {}

"""`tfx-edge demo`, whole, and a pipeline in which its exported model is damaged before it reaches the gate."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from damage import ShuffleWeights
from tfx.components.pusher.component import Pusher
from tfx.dsl.components.common.importer import Importer
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import pusher_pb2
from tfx.types import standard_artifacts

from tfx_edge.cli.summary import read_summary
from tfx_edge.components.edge_validator.component import EdgeValidator
from tfx_edge.pipelines.beam_args import IN_MEMORY
from tfx_edge.pipelines.digits.pipeline import GATE, PRUNING
from tfx_edge.pipelines.runs import Output, latest_outputs
from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import EdgeError, Manifest

Outputs = dict[tuple[str, str], Output]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def root(home: Path) -> Path:
    """Where the demo works."""
    return home / "digits"


def run_demo(home: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("tfx-edge"), "demo", "--home", home]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def outputs(home: Path, root: Path) -> Outputs:
    """One run of `tfx-edge demo`."""
    run = run_demo(home)
    assert run.returncode == 0, run.stdout + run.stderr + (root / "run.log").read_text()[-2000:]
    return latest_outputs(root / "metadata.db", "digits")


@pytest.fixture(scope="module")
def damaged(outputs: Outputs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outputs, Path]:
    """A pipeline in which the exported model is damaged before it reaches the gate, and the folder it would push to."""
    folder = tmp_path_factory.mktemp("damaged")
    sources = {
        "model": (outputs["TFLiteExporter", "model"], standard_artifacts.Model),
        "baseline": (outputs["Trainer", "model"], standard_artifacts.Model),
        "examples": (outputs["Transform", "transformed_examples"], standard_artifacts.Examples),
        "graph": (outputs["Transform", "transform_graph"], standard_artifacts.TransformGraph),
    }
    imported = {
        name: Importer(
            source_uri=output.uri,
            artifact_type=artifact_type,
            properties={"split_names": output.properties["split_names"]} if name == "examples" else {},
        ).with_id(name)
        for name, (output, artifact_type) in sources.items()
    }
    channels = {name: importer.outputs["result"] for name, importer in imported.items()}
    damage = ShuffleWeights(model=channels["model"])
    validator = EdgeValidator(
        model=damage.outputs["damaged"],
        baseline_model=channels["baseline"],
        examples=channels["examples"],
        transform_graph=channels["graph"],
        config=GATE,
    )
    pusher = Pusher(
        model=damage.outputs["damaged"],
        model_blessing=validator.outputs["blessing"],
        push_destination=pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(base_directory=str(folder / "pushed"))
        ),
    )
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="damaged",
            pipeline_root=str(folder / "artifacts"),
            components=[*imported.values(), damage, validator, pusher],
            metadata_connection_config=metadata.sqlite_metadata_connection_config(str(folder / "metadata.db")),
            beam_pipeline_args=list(IN_MEMORY),
        )
    )
    return latest_outputs(folder / "metadata.db", "damaged"), folder / "pushed"


def report_of(outputs: Outputs, component: str) -> dict:
    return json.loads((Path(outputs[component, "report"].uri) / "report.json").read_text())


def eval_split(outputs: Outputs) -> tuple[np.ndarray, np.ndarray]:
    """Transformed images `[n, 8, 8, 1]` and labels of the eval split, read without any of the suite's code."""
    files = [str(p) for p in (Path(outputs["Transform", "transformed_examples"].uri) / "Split-eval").iterdir()]
    images, labels = [], []
    for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        images.append(features["image"].float_list.value)
        labels.append(features["label"].int64_list.value[0])
    return np.array(images, np.float32).reshape(-1, 8, 8, 1), np.array(labels)


def plain_accuracy(flatbuffer: Path, images: np.ndarray, labels: np.ndarray) -> float:
    interpreter = Interpreter(str(flatbuffer))
    run = interpreter.get_signature_runner("serving_default")
    predictions = [int(next(iter(run(image=image[None]).values())).argmax()) for image in images]
    return float(np.mean(predictions == labels))


def test_the_model_is_blessed_and_published_as_it_was_exported(outputs: Outputs, root: Path) -> None:
    assert outputs["EdgeValidator", "blessing"].properties["blessed"] == 1
    pushed = outputs["EdgePromoter", "pushed_model"]
    assert pushed.properties["pushed"] == 1 and pushed.properties["pushed_version"] == "1"
    assert pushed.properties["pushed_destination"] == str(root / "channels" / "canary")
    channel = open_channel(LocalStorage(root / "channels"), "canary")
    verify_files(channel)
    [release] = channel.index.releases
    exported = (Path(outputs["TFLiteExporter", "model"].uri) / "Format-Serving" / "tflite").read_bytes()
    assert channel.read(f"bundles/{release.bundle}/tflite") == exported == (Path(pushed.uri) / "tflite").read_bytes()


def test_the_release_tells_its_run_its_data_its_baseline_and_what_the_gate_measured(outputs: Outputs, root: Path) -> None:
    channel = open_channel(LocalStorage(root / "channels"), "canary")
    [release] = channel.index.releases
    provenance = Manifest.from_json(channel.read(f"bundles/{release.bundle}/edge/manifest.json")).provenance
    assert provenance is not None and provenance.data is not None and provenance.evaluation is not None
    assert (provenance.run.pipeline, provenance.run.component) == ("digits", "EdgePromoter")
    assert set(provenance.data.fingerprints) == {"train", "eval"} and provenance.data.span == 0
    report = (Path(outputs["EdgeValidator", "report"].uri) / "report.json").read_bytes()
    assert provenance.evaluation.report_digest == hashlib.sha256(report).hexdigest()
    exported = Manifest.from_json((Path(outputs["TFLiteExporter", "model"].uri) / "edge" / "manifest.json").read_bytes())
    assert provenance.baseline_digest is not None and exported.provenance is None
    assert channel.log.entries[-1].provenance == provenance


def test_a_device_runs_the_model_and_reads_digits_with_it(outputs: Outputs, home: Path, root: Path) -> None:
    current = root / "device" / "state" / "current" / "tflite"
    assert current.read_bytes() == (Path(outputs["EdgePromoter", "pushed_model"].uri) / "tflite").read_bytes()
    said = dict(line.split(maxsplit=2)[1:] for line in run_demo(home).stdout.splitlines() if line.startswith("device "))
    seen, answers = said["sees"].split(), said["answers"].split()
    assert len(seen) == 10 and sum(a == b for a, b in zip(seen, answers, strict=True)) >= 8


def test_no_private_key_is_in_the_metadata_the_artifacts_the_channels_or_the_log(outputs: Outputs, root: Path) -> None:
    keys = [file.read_bytes() for file in (root / "keys").glob("*.pem")]
    bodies = [key.split(b"-----")[2].strip() for key in keys]
    assert len(bodies) == 13 and all(len(body) == 64 for body in bodies)
    for file in root.rglob("*"):
        if file.is_file() and not file.is_symlink() and file.parent.name != "keys":
            content = file.read_bytes()
            assert not any(body in content for body in bodies), file


def test_the_reported_accuracy_is_that_of_a_plain_litert_loop(outputs: Outputs) -> None:
    images, labels = eval_split(outputs)
    (overall,) = [m for m in report_of(outputs, "EdgeValidator")["metrics"] if m["slice"] == "Overall"]
    flatbuffer = Path(outputs["TFLiteExporter", "model"].uri) / "Format-Serving" / "tflite"
    assert overall["candidate"] == pytest.approx(plain_accuracy(flatbuffer, images, labels), abs=1e-6)
    assert overall["examples"] == len(labels)
    model = tf.saved_model.load(f"{outputs['Trainer', 'model'].uri}/Format-Serving")
    assert overall["baseline"] == pytest.approx(np.mean(np.argmax(model(images), axis=1) == labels), abs=1e-6)


def test_the_float_model_scores_97_percent_and_the_pruned_int8_model_keeps_it_within_a_point_six_times_smaller(outputs: Outputs) -> None:
    report = report_of(outputs, "EdgeValidator")
    (overall,) = [m for m in report["metrics"] if m["slice"] == "Overall"]
    assert overall["baseline"] >= 0.97
    assert overall["candidate"] >= overall["baseline"] - 0.01
    assert report["baseline_gzip_bytes"] >= 6 * report["gzip_bytes"]


def test_every_digit_is_a_slice_of_its_own(outputs: Outputs) -> None:
    slices = {m["slice"] for m in report_of(outputs, "EdgeValidator")["metrics"]}
    assert len(slices) == 11


def test_half_of_the_pruned_weights_are_zero_in_the_flatbuffer(outputs: Outputs) -> None:
    interpreter = Interpreter(str(Path(outputs["TFLiteExporter", "model"].uri) / "Format-Serving" / "tflite"))
    interpreter.allocate_tensors()
    constants = {
        detail["name"]: interpreter.get_tensor(detail["index"])
        for detail in interpreter.get_tensor_details()
        if detail["dtype"] == np.int8 and len(detail["shape"]) in (2, 4) and detail["quantization_parameters"]["scales"].size > 1
    }
    assert constants
    zeros = sum(int(np.sum(value == 0)) for value in constants.values())
    assert zeros / sum(value.size for value in constants.values()) >= PRUNING.target_sparsity


def test_a_model_damaged_after_export_is_neither_blessed_nor_pushed(damaged: tuple[Outputs, Path]) -> None:
    outputs, pushed = damaged
    blessing = outputs["EdgeValidator", "blessing"]
    assert blessing.properties["blessed"] == 0
    assert os.listdir(blessing.uri) == ["NOT_BLESSED"]
    reasons = report_of(outputs, "EdgeValidator")["reasons"]
    assert any("SparseCategoricalAccuracy" in reason and "Overall" in reason for reason in reasons), reasons
    assert outputs["Pusher", "pushed_model"].properties["pushed"] == 0
    assert not pushed.exists()


def test_a_second_demo_takes_an_unchanged_run_from_the_cache_and_publishes_nothing_anew(outputs: Outputs, home: Path, root: Path) -> None:
    run = run_demo(home)
    assert run.returncode == 0, run.stderr
    again = latest_outputs(root / "metadata.db", "digits")
    assert again.keys() == outputs.keys()
    assert all(output.cached for output in again.values())
    assert f"published release 1 in {root / 'channels' / 'canary'}\n" in run.stdout
    assert "verdict   BLESSED" in run.stdout
    assert run.stderr == ""


def test_the_demo_leaves_a_report_with_the_digits_on_which_the_models_differ_most(outputs: Outputs, root: Path) -> None:
    page = (root / "report.html").read_text()
    assert len(page) < 500_000
    assert page.count('<img src="data:image/png;base64,') == 16
    assert page.count("<figure>") >= 7 and ">Blessed<" in page
    assert all(f">{component}</td>" in page for component, _ in outputs)


def test_a_channel_that_is_gone_is_an_error_and_not_a_success(outputs: Outputs, root: Path) -> None:
    (root / "channels").rename(root / "elsewhere")
    try:
        with pytest.raises(EdgeError, match=r"canary: no channel; .*remove .*digits and run again"):
            read_summary(root / "metadata.db", "digits")
    finally:
        (root / "elsewhere").rename(root / "channels")

"""Models saved as TFX's penguin example saves them, in three forms, each through the same tail."""

import json
from pathlib import Path

import penguin_data
import pytest
import tensorflow as tf
from plain_flatbuffers import without_metadata
from tfx.components.example_gen.import_example_gen.component import ImportExampleGen
from tfx.components.pusher.component import Pusher
from tfx.components.schema_gen.component import SchemaGen
from tfx.components.statistics_gen.component import StatisticsGen
from tfx.components.trainer.component import Trainer
from tfx.components.transform.component import Transform
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import pusher_pb2, trainer_pb2

from tfx_edge.litert.inspect import gzip_size
from tfx_edge.pipelines import edge_stage, tuned_stage
from tfx_edge.pipelines.beam_args import IN_MEMORY
from tfx_edge.pipelines.runs import Output, latest_outputs
from tfx_edge.schemas import (
    CalibrationConfig,
    FineTuningConfig,
    GateConfig,
    OneOf,
    PruningConfig,
    QuantizationConfig,
    SearchConfig,
    Techniques,
    Threshold,
)

FORMS = {"keras2": "run_fn_keras2", "saved_model": "run_fn_saved_model", "keras3": "run_fn_keras3"}
GATE = GateConfig(label_key="species", thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02, lower_bound=0.9),))
PRUNING = PruningConfig(target_sparsity=0.3, layers=("hidden_1",), fine_tuning=FineTuningConfig(label_key="species", epochs=3))
SEARCH = SearchConfig(
    techniques=Techniques(pruning=PRUNING, calibration=CalibrationConfig(num_examples=100)),
    space={"pruning.target_sparsity": OneOf(values=(0.3, 0.5))},
    label_key="species",
    threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02),
    algorithm="grid",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("penguins")
    (folder / "data").mkdir()
    with tf.io.TFRecordWriter(str(folder / "data" / "penguins.tfrecord")) as writer:
        for record in penguin_data.raw_examples():
            writer.write(record)
    return folder


@pytest.fixture(scope="module")
def outputs(root: Path) -> dict[tuple[str, str], Output]:
    """One run: a Trainer and a tail for each form, Keras-side pruning only where there is a Keras model."""
    example_gen = ImportExampleGen(input_base=str(root / "data"))
    statistics_gen = StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = SchemaGen(statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True)
    transform = Transform(
        examples=example_gen.outputs["examples"], schema=schema_gen.outputs["schema"], preprocessing_fn="penguins.preprocessing_fn"
    )
    components = [example_gen, statistics_gen, schema_gen, transform]
    for form, run_fn in FORMS.items():
        trainer = Trainer(
            run_fn=f"penguins.{run_fn}",
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            train_args=trainer_pb2.TrainArgs(splits=["train"]),
            eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        ).with_id(f"Trainer.{form}")
        edge = edge_stage(
            trainer,
            transform,
            gate=GATE,
            calibration=CalibrationConfig(num_examples=100),
            pruning=PRUNING if form == "keras2" else None,
            quantization=QuantizationConfig(scheme="int8", io_type="int8" if form == "saved_model" else "float32"),
            name=form,
        )
        pusher = Pusher(
            model=edge.model,
            model_blessing=edge.blessing,
            push_destination=pusher_pb2.PushDestination(
                filesystem=pusher_pb2.PushDestination.Filesystem(base_directory=str(root / "pushed" / form))
            ),
        ).with_id(f"Pusher.{form}")
        components += [trainer, *edge, pusher]
        if form == "keras2":
            components += tuned_stage(trainer, transform, SEARCH, gate=GATE)
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="penguins",
            pipeline_root=str(root / "artifacts"),
            components=components,
            metadata_connection_config=metadata.sqlite_metadata_connection_config(str(root / "metadata.db")),
            beam_pipeline_args=list(IN_MEMORY),
        )
    )
    return latest_outputs(root / "metadata.db", "penguins")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_a_trainer_saves_goes_through_the_tail_to_a_pushed_model(
    form: str, outputs: dict[tuple[str, str], Output], root: Path
) -> None:
    report = json.loads((Path(outputs[f"EdgeValidator.{form}", "report"].uri) / "report.json").read_text())
    assert report["blessed"], report["reasons"]
    assert len(list((root / "pushed" / form).glob("*/tflite"))) == 1


def test_the_stages_of_one_pipeline_keep_their_models_apart(outputs: dict[tuple[str, str], Output]) -> None:
    manifests = [
        json.loads((Path(outputs[f"TFLiteExporter.{form}", "model"].uri) / "edge" / "manifest.json").read_text()) for form in FORMS
    ]
    assert len({m["digest"] for m in manifests}) == len(FORMS)
    assert {t["dtype"] for t in manifests[1]["signature"]["inputs"]} == {"int8"}
    assert {t["dtype"] for t in manifests[0]["signature"]["inputs"]} == {"float32"}
    assert ("Pruner.keras2", "model") in outputs and ("Pruner.keras3", "model") not in outputs


def test_a_searched_tail_gives_a_blessed_model_of_the_size_that_the_search_measured(outputs: dict[tuple[str, str], Output]) -> None:
    report = json.loads((Path(outputs["EdgeValidator", "report"].uri) / "report.json").read_text())
    assert report["blessed"], report["reasons"]
    search = json.loads((Path(outputs["CompressionTuner", "report"].uri) / "search.json").read_text())
    best = next(trial for trial in search["trials"] if trial["values"] == search["best"])
    exported = without_metadata((Path(outputs["TFLiteExporter", "model"].uri) / "Format-Serving" / "tflite").read_bytes())
    assert len(search["trials"]) == 2
    assert (len(exported), gzip_size(exported)) == (best["size_bytes"], best["gzip_bytes"])

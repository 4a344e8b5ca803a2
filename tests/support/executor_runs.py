"""Each executor of the suite on tiny artifacts, to be run again and again in one process."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gate_data
import numpy as np
import tf_keras
from example_shards import example, examples_artifact, schema, transform_graph_artifact
from exporting import calibration_artifact
from release_channels import Fleet, bundle, exported
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.executor import Executor as CalibrationGen
from tfx_edge.components.clusterer.executor import Executor as Clusterer
from tfx_edge.components.compression_tuner.executor import Executor as CompressionTuner
from tfx_edge.components.distiller.executor import Executor as Distiller
from tfx_edge.components.edge_promoter.executor import Executor as EdgePromoter
from tfx_edge.components.edge_validator.blessing import write_blessing
from tfx_edge.components.low_rank_factorizer.executor import Executor as LowRankFactorizer
from tfx_edge.components.model_importer.executor import Executor as ModelImporter
from tfx_edge.components.model_selector.executor import Executor as ModelSelector
from tfx_edge.components.pruner.executor import Executor as Pruner
from tfx_edge.components.quantizer.executor import Executor as Quantizer
from tfx_edge.components.tflite_exporter.executor import Executor as TFLiteExporter
from tfx_edge.schemas import (
    CalibrationConfig,
    ClusteringConfig,
    Config,
    DistillationConfig,
    EnergyRank,
    ExportConfig,
    FineTuningConfig,
    GateConfig,
    GateReport,
    LowRankConfig,
    MetricComparison,
    OneOf,
    PromotionConfig,
    PruningConfig,
    QuantizationConfig,
    SearchConfig,
    SelectionConfig,
    Techniques,
    Threshold,
)
from tfx_edge.schemas.artifact_types import CalibrationData, EdgeReport, QuantizationPlan

Run = Callable[[Path], None]

BEAM_ARGS = ("--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=1", "--sdk_container_image=none")
VALUES = np.random.default_rng(0).normal(size=(64, 12)).astype(np.float32)
LABELS = VALUES[:, :3].argmax(axis=1)
TUNING = FineTuningConfig(label_key="label", epochs=1, batch_size=32)
ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.99)


def made(kind: Any, path: Path, number: int = 1) -> Any:
    """An artifact with its folder, as TFX makes it."""
    path.mkdir(parents=True, exist_ok=True)
    artifact = kind()
    artifact.uri, artifact.id = str(path), number
    return artifact


def executor_runs(folder: Path) -> dict[str, Run]:
    """By component: runs its executor, with outputs in a folder that is new."""
    x = tf_keras.Input((12,), name="x")
    hidden = tf_keras.layers.Dense(40, "relu", name="hidden")(x)
    model = tf_keras.Model(x, tf_keras.layers.Dense(3, "softmax", name="head")(hidden))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.save(str(folder / "model" / "Format-Serving"), save_format="tf")
    model.save(str(folder / "model.h5"))
    rows = [example({"x": row.tolist(), "label": [int(label)]}) for row, label in zip(VALUES, LABELS, strict=True)]
    features = schema(x=("FLOAT", 12), label=("INT",))
    data = {
        keys.FLOAT_MODEL: [made(standard_artifacts.Model, folder / "model")],
        keys.EXAMPLES: [examples_artifact(folder / "examples", {"train": [rows[:40]], "eval": [rows[40:]]})],
        keys.TRANSFORM_GRAPH: [transform_graph_artifact(folder / "graph", features)],
    }
    calibration = {keys.CALIBRATION_DATA: [calibration_artifact(folder / "calibration", [rows[:40]], features)]}
    quantized = {keys.MODEL: standard_artifacts.Model, keys.QUANTIZATION_PLAN: QuantizationPlan}
    int8 = QuantizationConfig(scheme="int8")

    def runs(executor: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any], config: Config | None, **properties: Any) -> Run:
        def run(place: Path) -> None:
            context = BaseBeamExecutor.Context(beam_pipeline_args=list(BEAM_ARGS), tmp_dir=str(place / "tmp"), unique_id="1")
            told = {key: [made(kind, place / key)] for key, kind in outputs.items()}
            executor(context).Do(dict(inputs), told, {**properties, **({keys.CONFIG: config.to_json()} if config else {})})

        return run

    def changes(executor: Any, config: Config) -> Run:
        return runs(executor, data, {keys.MODEL: standard_artifacts.Model}, config, model_fn=None)

    runs(Quantizer, {**data, **calibration}, quantized, int8)(folder / "quantizer")
    plan = {keys.QUANTIZATION_PLAN: [made(QuantizationPlan, folder / "quantizer" / keys.QUANTIZATION_PLAN)]}
    search = SearchConfig(
        techniques=Techniques(),
        space={"quantization.scheme": OneOf(values=("float16",))},
        label_key="label",
        threshold=ACCURACY,
        algorithm="grid",
    )
    searched = {
        **quantized,
        keys.BEST_HYPERPARAMETERS: standard_artifacts.HyperParameters,
        keys.TUNER_RESULTS: standard_artifacts.TunerResults,
        keys.REPORT: EdgeReport,
    }
    return {
        "CalibrationGen": runs(
            CalibrationGen, data, {keys.CALIBRATION_DATA: CalibrationData}, CalibrationConfig(num_examples=20, strategy="coverage")
        ),
        "Clusterer": changes(Clusterer, ClusteringConfig(clusters={"hidden": 4}, fine_tuning=TUNING)),
        "CompressionTuner": runs(CompressionTuner, data, searched, search),
        "Distiller": changes(Distiller, DistillationConfig(fine_tuning=TUNING)),
        "EdgePromoter": _promotions(folder / "channels"),
        "EdgeValidator": _verdicts(folder / "gate"),
        "LowRankFactorizer": changes(LowRankFactorizer, LowRankConfig(rank=EnergyRank(energy=0.6), fine_tuning=TUNING)),
        "ModelImporter": runs(ModelImporter, {}, {keys.MODEL: standard_artifacts.Model}, None, path=str(folder / "model.h5")),
        "ModelSelector": _selections(folder / "candidates"),
        "Pruner": changes(Pruner, PruningConfig(target_sparsity=0.5, layers=("hidden",), fine_tuning=TUNING)),
        "Quantizer": runs(Quantizer, {**data, **calibration}, quantized, int8),
        "TFLiteExporter": runs(
            TFLiteExporter, {keys.FLOAT_MODEL: data[keys.FLOAT_MODEL], **plan}, {keys.MODEL: standard_artifacts.Model}, ExportConfig()
        ),
    }


def _promotions(folder: Path) -> Run:
    model = made(standard_artifacts.Model, folder / "model")
    exported(folder / "model", bundle(1))
    blessing = made(standard_artifacts.ModelBlessing, folder / "blessing")
    write_blessing(blessing, True, model, None, "EdgeValidator")

    def run(place: Path) -> None:
        fleet = Fleet(place).create("canary")
        config = PromotionConfig(channels=str(fleet.folder / "channels"), keyring=str(fleet.folder / "keys" / "keyring.json"))
        pushed = made(standard_artifacts.PushedModel, place / "pushed")
        EdgePromoter().Do(
            {keys.MODEL: [model], keys.MODEL_BLESSING: [blessing]}, {keys.PUSHED_MODEL: [pushed]}, {keys.CONFIG: config.to_json()}
        )
        assert pushed.get_int_custom_property("pushed") == 1

    return run


def _verdicts(folder: Path) -> Run:
    model, examples = gate_data.train(gate_data.examples(200, seed=1)), gate_data.examples(60)
    model.save(str(folder / "Format-Serving"))
    flatbuffer = gate_data.flatbuffer(model)
    config = GateConfig(label_key="label", thresholds=(ACCURACY,))

    def run(place: Path) -> None:
        assert gate_data.run_gate(place, model=flatbuffer, baseline=str(folder), data=examples, config=config).report.blessed

    return run


def _selections(folder: Path) -> Run:
    metric = MetricComparison(metric=ACCURACY.title, slice="Overall", examples=9, baseline=0.9, candidate=0.9, difference=0.0)
    inputs: dict[str, list[Any]] = {}
    for i in range(2):
        model, blessing, document = (
            made(kind, folder / f"{name}-{i}")
            for name, kind in (("model", standard_artifacts.Model), ("blessing", standard_artifacts.ModelBlessing), ("report", EdgeReport))
        )
        (Path(model.uri) / "Format-Serving").mkdir()
        (Path(model.uri) / "Format-Serving" / "tflite").write_bytes(bytes(100_000))
        write_blessing(blessing, True, model, None, f"EdgeValidator.{i}")
        document.set_string_custom_property("current_model", model.uri)
        report = GateReport(
            blessed=True,
            reasons=(),
            config=GateConfig(label_key="y", thresholds=(ACCURACY,)),
            metrics=(metric,),
            size_bytes=100_000,
            gzip_bytes=100 + i,
            runtime="2.3.0",
        )
        (Path(document.uri) / "report.json").write_text(report.to_json())
        for key, artifact in ((keys.MODEL, model), (keys.BLESSING, blessing), (keys.REPORT, document)):
            inputs[keys.nth(key, i)] = [artifact]

    def run(place: Path) -> None:
        outputs = {keys.MODEL: standard_artifacts.Model, keys.BLESSING: standard_artifacts.ModelBlessing, keys.REPORT: EdgeReport}
        told = {key: [made(kind, place / key)] for key, kind in outputs.items()}
        ModelSelector().Do(dict(inputs), told, {keys.CONFIG: SelectionConfig().to_json()})

    return run

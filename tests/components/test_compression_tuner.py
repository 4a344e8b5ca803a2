"""The component on artifacts built by hand: real trials of a tiny model, from a saved model to a plan that the exporter takes."""

import json
from pathlib import Path

import keras_tuner
import numpy as np
import pytest
import tf_keras
from example_shards import example, examples_artifact, schema, transform_graph_artifact
from exporting import calibration_artifact, run_exporter
from plain_flatbuffers import without_metadata
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.compression_tuner.component import CompressionTuner
from tfx_edge.components.compression_tuner.executor import Executor
from tfx_edge.litert.inspect import gzip_size
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import (
    Between,
    ClusteringConfig,
    DistillationConfig,
    EdgeError,
    FineTuningConfig,
    LowRankConfig,
    OneOf,
    PruningConfig,
    QatConfig,
    QuantizationConfig,
    SearchConfig,
    SearchReport,
    SparsityReport,
    Techniques,
    Threshold,
)
from tfx_edge.schemas.artifact_types import CalibrationData, EdgeReport, QuantizationPlan

NAMES = ("a", "b", "c")
SCHEMA = schema(**dict.fromkeys(NAMES, ("FLOAT",)), label=("INT",))
VALUES = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
LABELS = VALUES.argmax(axis=1)
TUNING = FineTuningConfig(label_key="label", epochs=2, batch_size=32, learning_rate=0.01)
ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.05)
OUTPUTS = {
    keys.MODEL: standard_artifacts.Model,
    keys.QUANTIZATION_PLAN: QuantizationPlan,
    keys.BEST_HYPERPARAMETERS: standard_artifacts.HyperParameters,
    keys.TUNER_RESULTS: standard_artifacts.TunerResults,
    keys.REPORT: EdgeReport,
}
PRUNED = SearchConfig(
    techniques=Techniques(pruning=PruningConfig(layers=("hidden",), fine_tuning=TUNING)),
    space={"pruning.target_sparsity": OneOf(values=(0.1, 0.6, 0.99))},
    label_key="label",
    threshold=ACCURACY,
    algorithm="grid",
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    tf_keras.utils.set_random_seed(3)
    ends = [tf_keras.Input((1,), name=name) for name in NAMES]
    hidden = tf_keras.layers.Dense(48, "relu", name="hidden")(tf_keras.layers.concatenate(ends))
    hidden = tf_keras.layers.Dense(48, "relu", name="wide")(hidden)
    model = tf_keras.Model(ends, tf_keras.layers.Dense(3, name="head")(hidden))
    model.compile(tf_keras.optimizers.Adam(0.02), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(list(VALUES.T[..., None]), LABELS, epochs=8, verbose=0)
    model.save(str(folder / "model" / "Format-Serving"), save_format="tf")
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder / "model")
    rows = [
        example({**{n: [float(v)] for n, v in zip(NAMES, row, strict=True)}, "label": [int(label)]})
        for row, label in zip(VALUES, LABELS, strict=True)
    ]
    return {
        keys.FLOAT_MODEL: [artifact],
        keys.EXAMPLES: [examples_artifact(folder / "examples", {"train": [rows[:200]], "eval": [rows[200:]]})],
        keys.TRANSFORM_GRAPH: [transform_graph_artifact(folder / "graph", SCHEMA)],
        keys.CALIBRATION_DATA: [calibration_artifact(folder / "calibration", [rows[:100]], SCHEMA)],
    }


def run(folder: Path, inputs, config):
    outputs = {key: kind() for key, kind in OUTPUTS.items()}
    for key, artifact in outputs.items():
        artifact.uri = str(folder / key)
        Path(artifact.uri).mkdir(parents=True)  # as TFX does
    Executor().Do(inputs, {key: [artifact] for key, artifact in outputs.items()}, {keys.CONFIG: config.to_json()})
    return outputs


def report_of(outputs):
    return SearchReport.from_json(Path(outputs[keys.REPORT].uri, "search.json").read_bytes())


@pytest.fixture(scope="module")
def pruned(inputs, tmp_path_factory):
    return run(tmp_path_factory.mktemp("pruned"), inputs, PRUNED)


def test_every_trial_is_a_row_and_the_smallest_feasible_one_wins(pruned):
    report = report_of(pruned)
    rows = {trial.values["pruning.target_sparsity"]: trial for trial in report.trials}
    assert [rows[sparsity].feasible for sparsity in (0.1, 0.6, 0.99)] == [True, True, False]  # 2 weights of 144 can't tell three classes
    assert rows[0.99].gzip_bytes < rows[0.6].gzip_bytes < rows[0.1].gzip_bytes < report.reference.gzip_bytes
    assert report.best == {"pruning.target_sparsity": 0.6}
    assert all(trial.drop == pytest.approx(report.reference.metric - trial.metric) for trial in report.trials)
    assert report.reference.metric > 0.9


def test_the_exporter_makes_of_model_and_plan_the_flatbuffer_that_was_measured(pruned, tmp_path):
    best = next(trial for trial in report_of(pruned).trials if trial.values == report_of(pruned).best)
    exported = run_exporter(tmp_path / "exported", pruned[keys.MODEL], pruned[keys.QUANTIZATION_PLAN])
    flatbuffer = without_metadata(Path(exported.uri, "Format-Serving", "tflite").read_bytes())
    assert (len(flatbuffer), gzip_size(flatbuffer)) == (best.size_bytes, best.gzip_bytes)
    logits = Runner(flatbuffer)({name: VALUES[200:, i] for i, name in enumerate(NAMES)})["head"]
    assert (logits.argmax(axis=1) == LABELS[200:]).mean() == pytest.approx(best.metric, abs=1e-6)


def test_the_plan_has_its_ranges_from_all_calibration_data_alone(pruned):
    planned, _ = plan_files.read(pruned[keys.QUANTIZATION_PLAN].uri)
    plan, ranges = planned.plan, planned.ranges
    assert (ranges.examples, plan.calibration_digest) == (100, "5a" * 32)
    for i, name in enumerate(NAMES):
        [found] = [r for tensor, r in ranges.ranges.items() if tensor == f"serving_default_{name}:0"]
        assert (found.min, found.max) == (VALUES[:100, i].min(), VALUES[:100, i].max())
    written = [pruned[keys.QUANTIZATION_PLAN].get_string_custom_property(p) for p in ("scheme", "method", "float_model_digest")]
    assert written == ["int8", "ptq", plan.float_model_digest]


def test_hyperparameters_and_results_are_files_as_tfx_tuner_writes_them(pruned):
    report = report_of(pruned)
    written = json.loads(Path(pruned[keys.BEST_HYPERPARAMETERS].uri, "best_hyperparameters.txt").read_text())
    assert keras_tuner.HyperParameters.from_config(written).values == report.best
    results = json.loads(Path(pruned[keys.TUNER_RESULTS].uri, "tuner_results.json").read_text())
    assert len(results) == 3
    assert {key: results[0][key] for key in report.best} == report.best
    assert [row["score"] for row in results] == sorted(row["score"] for row in results)
    assert [row["score"] < 0 for row in results] == [True, True, False]


def test_the_best_as_techniques_and_its_reports_are_there_for_the_next_pipeline(pruned):
    techniques = Techniques.from_json(Path(pruned[keys.REPORT].uri, "techniques.json").read_bytes())
    assert techniques.pruning.target_sparsity == 0.6
    assert (techniques.quantization.scheme, techniques.clustering) == ("int8", None)
    sparsity = SparsityReport.from_json(Path(pruned[keys.MODEL].uri, "sparsity.json").read_bytes())
    assert sparsity.config == techniques.pruning
    assert Path(pruned[keys.MODEL].uri, "preparation.json").exists()
    assert float_models.load([pruned[keys.MODEL]]).keras_model is not None


def test_all_steps_in_one_trial_and_a_second_run_that_only_reads(inputs, tmp_path):
    config = SearchConfig(
        techniques=Techniques(
            distillation=DistillationConfig(fine_tuning=TUNING.model_copy(update={"epochs": 8})),
            low_rank=LowRankConfig(layers=("wide",), fine_tuning=TUNING),
            pruning=PruningConfig(layers=("hidden",), fine_tuning=TUNING),
            clustering=ClusteringConfig(fine_tuning=TUNING),
            quantization=QuantizationConfig(qat=QatConfig(fine_tuning=TUNING)),
        ),
        space={"low_rank.rank.energy": Between(low=0.3, high=0.5), "distillation.student.width": OneOf(values=(0.75,))},
        label_key="label",
        threshold=ACCURACY.model_copy(update={"max_drop": 0.5}),
        objective="latency_ratio",
        max_trials=1,
        trials_dir=str(tmp_path / "trials"),
    )
    without_calibration = {key: value for key, value in inputs.items() if key != keys.CALIBRATION_DATA}
    first = run(tmp_path / "first", without_calibration, config)
    names = {path.name for path in Path(first[keys.MODEL].uri).iterdir()}
    assert names == {
        "Format-Serving",
        "preparation.json",
        "distillation.json",
        "low_rank.json",
        "sparsity.json",
        "clusters.json",
        "qat.json",
    }
    [trial] = report_of(first).trials
    assert trial.feasible and trial.latency_ratio > 0
    assert plan_files.read(first[keys.QUANTIZATION_PLAN].uri)[0].plan.method == "qat"
    second = run(tmp_path / "second", without_calibration, config)
    assert report_of(second) == report_of(first)  # its seconds too
    assert {p.name: p.read_bytes() for p in Path(second[keys.QUANTIZATION_PLAN].uri).iterdir()} == {
        p.name: p.read_bytes() for p in Path(first[keys.QUANTIZATION_PLAN].uri).iterdir()
    }


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"split": "test"}, r"split 'test'"),
        ({"label_key": "lable"}, r"label 'lable'"),
        ({"threshold": ACCURACY.model_copy(update={"output": "tail"})}, r"threshold.output 'tail': the model's outputs are head"),
        ({"threshold": Threshold(metric="NDCG", max_drop=0.1)}, r"metric 'NDCG'"),
    ],
)
def test_bad_input_is_one_line_before_any_trial_and_leaves_nothing_behind(inputs, tmp_path, changes, text):
    with pytest.raises(EdgeError, match=text) as caught:
        run(tmp_path, inputs, PRUNED.model_copy(update=changes))
    assert "\n" not in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def channels():
    kinds = {
        "model": standard_artifacts.Model,
        "examples": standard_artifacts.Examples,
        "transform_graph": standard_artifacts.TransformGraph,
    }
    return {name: Channel(type=kind) for name, kind in kinds.items()}


def test_the_config_is_stored_as_json_or_left_to_the_run():
    calibration = Channel(type=CalibrationData)
    tuner = CompressionTuner(**channels(), calibration_data=calibration, config=PRUNED)
    assert SearchConfig.from_json(tuner.exec_properties[keys.CONFIG]) == PRUNED
    assert {key: channel.type for key, channel in tuner.outputs.items()} == OUTPUTS
    parameter = RuntimeParameter(name="search", ptype=str)
    assert CompressionTuner(**channels(), config=parameter).exec_properties[keys.CONFIG] is parameter


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"config": PRUNED}, "calibration_data"),
        ({"config": PRUNED.model_copy(update={"threshold": Threshold(metric="NDCG", max_drop=0.1)})}, "metric 'NDCG': Keras has none"),
        (
            {"config": PRUNED.model_copy(update={"threshold": Threshold(metric="AUC", max_drop=0.1, config={"curves": "PR"})})},
            "metric 'AUC' with config",
        ),
        ({"config": TUNING}, "config is a FineTuningConfig"),
        ({"config": PRUNED, "transform_graph": None}, "transform_graph nor schema"),
    ],
)
def test_what_can_be_known_before_is_refused_when_the_pipeline_is_built(changes, text):
    with pytest.raises(EdgeError, match=text):
        CompressionTuner(**{**channels(), **changes})

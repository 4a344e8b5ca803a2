"""Quantizer with corrections and accuracy targets, on a model that plain int8 breaks: two hidden channels are 1000 times the others."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tf_keras
from example_shards import example, examples_artifact, transform_graph_artifact
from exporting import BEAM_ARGS, SCALARS, SCHEMA, calibration_artifact, files, keras_model, model_artifact, run_exporter, values
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Model

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.quantizer.component import Quantizer
from tfx_edge.components.quantizer.executor import Executor
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import (
    AccuracyTarget,
    CrossLayerEqualization,
    EdgeError,
    FineTuningConfig,
    QatConfig,
    QuantizationConfig,
    RangeConfig,
    Threshold,
)
from tfx_edge.schemas.artifact_types import CalibrationData, QuantizationPlan

ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02)
TARGET = AccuracyTarget(threshold=ACCURACY, label_key="species", split="eval")
TFLITE = "Format-Serving/tflite"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    model = keras_model()
    first, second = model.layers[-3:-1]
    scale = np.ones(16, np.float32)
    scale[:2] = 1000
    kernel, bias = first.get_weights()
    first.set_weights([kernel * scale, bias * scale])
    kernel, bias = second.get_weights()
    second.set_weights([kernel / scale[:, None], bias])
    return artifacts(tmp_path_factory.mktemp("inputs"), model)


def artifacts(folder, model):
    """What Quantizer takes; the labels are what the model says."""
    model.compile("sgd", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    artifact = model_artifact(folder / "model", model)
    labels = float_models.load([artifact]).predict(values())["logits"].argmax(1)
    rows = [example({"species": [int(label)], **{name: [float(values()[name][i])] for name in SCALARS}}) for i, label in enumerate(labels)]
    return SimpleNamespace(
        model=artifact,
        labels=labels,
        calibration=calibration_artifact(folder / "calibration", [rows]),
        examples=examples_artifact(folder / "examples", {"train": [rows], "eval": [rows]}),
        graph=transform_graph_artifact(folder / "graph", SCHEMA),
    )


def run(folder, inputs, config):
    outputs = Model(), QuantizationPlan()
    for output, name in zip(outputs, ("model", "plan"), strict=True):
        output.uri = str(folder / name)
        Path(output.uri).mkdir(parents=True)  # as TFX does
    given = {
        keys.FLOAT_MODEL: [inputs.model],
        keys.CALIBRATION_DATA: [inputs.calibration],
        keys.EXAMPLES: [inputs.examples],
        keys.TRANSFORM_GRAPH: [inputs.graph],
    }
    context = BaseBeamExecutor.Context(beam_pipeline_args=list(BEAM_ARGS), tmp_dir=str(folder / "tmp"), unique_id="1")
    Executor(context).Do(given, {keys.MODEL: [outputs[0]], keys.QUANTIZATION_PLAN: [outputs[1]]}, {keys.CONFIG: config.to_json()})
    return outputs


def accuracy(folder, inputs, outputs):
    exported = run_exporter(folder / "exported", *outputs)
    logits = Runner(files(exported.uri)[TFLITE])(values())["logits"]
    return float((logits.argmax(1) == inputs.labels).mean())


def plan_of(outputs):
    return plan_files.read(outputs[1].uri)[0].plan


def test_as_asked_the_model_is_broken(inputs, tmp_path):
    assert accuracy(tmp_path, inputs, run(tmp_path, inputs, QuantizationConfig(scheme="int8"))) < 0.9


@pytest.fixture(scope="module")
def corrected(inputs, tmp_path_factory):
    config = QuantizationConfig(scheme="int8", corrections=(CrossLayerEqualization(),))
    return run(tmp_path_factory.mktemp("corrected"), inputs, config)


def test_corrections_are_in_the_plan_and_the_export_needs_no_data_for_them(inputs, corrected, tmp_path):
    assert set(files(corrected[1].uri)) == {"plan.json", "ranges.json", "constants.npz"}
    assert any(layer.after > layer.before for layer in plan_of(corrected).corrected if layer.after is not None)
    assert accuracy(tmp_path, inputs, corrected) > 0.98


@pytest.mark.parametrize("damage", ["gone", "other values", "no archive"])
def test_constants_that_are_not_the_plans_are_refused(corrected, tmp_path, damage):
    plan = QuantizationPlan()
    plan.uri = str(tmp_path / "plan")
    Path(plan.uri).mkdir()
    for name, content in files(corrected[1].uri).items():
        if name != "constants.npz":
            (tmp_path / "plan" / name).write_bytes(content)
        elif damage == "other values":
            constants = dict(np.load(Path(corrected[1].uri, name)))
            np.savez(tmp_path / "plan" / name, **{key: value * 2 for key, value in constants.items()})
        elif damage == "no archive":
            (tmp_path / "plan" / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(EdgeError, match=r"constants.npz .*run Quantizer again"):
        run_exporter(tmp_path / "exported", corrected[0], plan)


def test_a_target_is_met_by_the_first_remedy_that_helps_enough_and_the_plan_tells_what_was_tried(inputs, tmp_path):
    found = run(tmp_path, inputs, QuantizationConfig(scheme="int8", accuracy_target=TARGET))
    plan = plan_of(found)
    assert [plan.trials[0].step, plan.trials[0].feasible] == ["as_asked", False]
    assert plan.trials[-1].feasible and plan.decision not in plan.warnings and "cross_layer_equalization" in plan.decision
    assert accuracy(tmp_path, inputs, found) >= 1 - ACCURACY.max_drop


def test_a_target_out_of_reach_is_a_warning_with_the_reason(inputs, tmp_path):
    target = TARGET.model_copy(update={"escalation": ()})
    plan = plan_of(run(tmp_path, inputs, QuantizationConfig(scheme="int8", accuracy_target=target)))
    assert plan.warnings[0] == plan.decision != "" and not any(trial.feasible for trial in plan.trials)


@pytest.mark.parametrize("scheme", ["dynamic_range", "int4_dynamic_range"])
def test_calibration_data_that_is_given_serves_the_remedies_of_a_scheme_that_needs_none(inputs, tmp_path, scheme):
    target = TARGET.model_copy(update={"escalation": ("bias_correction", "int16x8")})
    one_scale = QuantizationConfig(scheme=scheme, granularity="tensor", accuracy_target=target)  # too coarse for channels so uneven
    plan = plan_of(run(tmp_path, inputs, one_scale))
    assert [(trial.step, trial.error) for trial in plan.trials] == [("as_asked", ""), ("bias_correction", ""), ("int16x8", "")]


def with_training(learning_rate):
    tuning = FineTuningConfig(label_key="species", epochs=1, learning_rate=learning_rate)
    target = TARGET.model_copy(update={"escalation": (), "qat": QatConfig(fine_tuning=tuning)})
    halved = RangeConfig(method="percentile", percentile=60)  # clips most of every activation
    return QuantizationConfig(scheme="int8", ranges=halved, accuracy_target=target)


def test_training_is_the_last_resort_where_the_target_allows_it(tmp_path):
    given = artifacts(tmp_path, keras_model())
    found = run(tmp_path / "trained", given, with_training(1e-4))
    plan = plan_of(found)
    assert [(trial.step, trial.feasible) for trial in plan.trials] == [("as_asked", False), ("qat", True)]
    assert plan.method == "qat" and plan.warnings == () and "within max_drop" in plan.decision
    assert "qat.json" in files(found[0].uri) and accuracy(tmp_path, given, found) >= 1 - ACCURACY.max_drop


def test_training_that_brings_the_model_no_nearer_to_the_target_is_a_row_and_no_more(inputs, tmp_path):
    found = run(tmp_path, inputs, with_training(1e-6).model_copy(update={"ranges": RangeConfig()}))
    plan = plan_of(found)
    assert [(trial.step, trial.feasible) for trial in plan.trials] == [("as_asked", False), ("qat", False)]
    assert plan.method == "ptq" and plan.decision in plan.warnings and "qat.json" not in files(found[0].uri)


def test_a_target_without_examples_is_refused_when_the_pipeline_is_built():
    with pytest.raises(EdgeError, match="accuracy_target without examples to measure on"):
        Quantizer(
            model=Channel(type=Model),
            calibration_data=Channel(type=CalibrationData),
            config=QuantizationConfig(scheme="int8", accuracy_target=TARGET),
        )


@pytest.mark.parametrize(
    ("metric", "label_key", "text"),
    [
        ("CategoricalAccuracy", "species", "label_key 'species': .* compares each of the output's 3 values .* take a Sparse metric"),
        ("SparseCategoricalAccuracy", "year", "label_key 'year': .* a label is .*, the output has the classes 0 to 2"),
    ],
)
def test_labels_that_no_model_could_predict_are_refused(inputs, tmp_path, metric, label_key, text):
    target = TARGET.model_copy(update={"threshold": Threshold(metric=metric, max_drop=0.02), "label_key": label_key})
    with pytest.raises(EdgeError, match=text):
        run(tmp_path, inputs, QuantizationConfig(scheme="int8", accuracy_target=target))

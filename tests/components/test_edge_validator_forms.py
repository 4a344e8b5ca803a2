"""What the gate takes: baselines and candidates in every form, preprocessing, signatures, targets and tables; and TFX's own Evaluator."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import gate_data
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import json_format, text_format
from tensorflow_model_analysis.proto import config_pb2
from tfx.components.evaluator.executor import Executor as StockEvaluator
from tfx.types import standard_artifacts

from tfx_edge.components.edge_validator import stock_evaluator
from tfx_edge.schemas import Budget, DriftLimit, EdgeError, GateConfig, Slice, Target, Threshold

ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02)


@pytest.fixture(scope="module")
def models() -> SimpleNamespace:
    keras_model = gate_data.train(gate_data.examples(3000, seed=1))
    data = gate_data.examples()
    return SimpleNamespace(
        keras=keras_model,
        data=data,
        float32=gate_data.flatbuffer(keras_model),
        int8=gate_data.int8_flatbuffer(keras_model, data["x"]),
        accuracy=float((keras_model.predict(data["x"], verbose=0).argmax(axis=1) == data["label"]).mean()),
    )


def config(*thresholds: Threshold, **fields: Any) -> GateConfig:
    return GateConfig(label_key="label", thresholds=thresholds or (ACCURACY,), **{"layer_examples": 0, **fields})


def flatbuffer_baseline(folder: Path, model: bytes) -> str:
    (folder / "baseline" / "Format-Serving").mkdir(parents=True)
    (folder / "baseline" / "Format-Serving" / "tflite").write_bytes(model)
    return str(folder / "baseline")


def overall(result: SimpleNamespace) -> tuple[float, float]:
    (found,) = [m for m in result.report.metrics if m.slice == "Overall"]
    return found.baseline, found.candidate


def test_the_report_of_a_full_config_says_everything(models: SimpleNamespace, tmp_path: Path) -> None:
    result = gate_data.run_gate(
        tmp_path,
        model=models.int8,
        baseline=flatbuffer_baseline(tmp_path, models.float32),
        data=models.data,
        config=config(
            confidence=0.8,
            layer_examples=16,
            drift=[DriftLimit(max_flip_rate=0.1, max_worst_abs_error=0.5, min_sqnr_db=10)],
            budget=Budget(
                max_latency_ratio=1000, max_peak_memory_bytes=10**9, min_gzip_ratio=0.1, operators=("FULLY_CONNECTED", "SOFTMAX")
            ),
            targets=[Target(profile="litert-cpu")],
        ),
    )
    report = result.report
    assert report.blessed, report.reasons
    assert report.notes == ()
    assert report.metrics[0].interval is not None and report.metrics[0].interval.confidence == 0.8
    assert report.drift[0].slice == "Overall" and report.drift[0].outputs[0].examples == len(models.data["label"])
    assert report.layers is not None and report.layers.examples == 16
    assert [layer.op for layer in report.layers.layers] == ["FULLY_CONNECTED", "FULLY_CONNECTED", "SOFTMAX"]
    assert report.latency_ms and report.baseline_latency_ms and report.peak_memory_bytes
    assert report.baseline_size_bytes == len(models.float32)
    assert report.operators == {"FULLY_CONNECTED": 2, "SOFTMAX": 1}
    assert [t.profile for t in report.targets] == ["litert-cpu"]


def test_limits_targets_and_certainty_each_refuse(models: SimpleNamespace, tmp_path: Path) -> None:
    few = {name: values[:60] for name, values in models.data.items()}
    result = gate_data.run_gate(
        tmp_path,
        model=models.int8,
        baseline=flatbuffer_baseline(tmp_path, models.float32),
        data=few,
        config=config(
            confidence=0.99,
            drift=[DriftLimit(max_worst_abs_error=0.0)],
            budget=Budget(max_latency_ratio=1e-6, max_peak_memory_bytes=1, operators=("SOFTMAX",)),
            targets=[
                Target(profile="npu-qualcomm"),
                Target(profile="tflm", max_arena_bytes=1),
                Target(profile="ethos-u55", max_sram_bytes=1),
                Target(profile="edgetpu"),
            ],
        ),
    )
    text = gate_data.refused(result)
    for reason in ("undecided; the difference lies within", "worst_abs_error is", "max_latency_ratio is 1e-06", "max_peak_memory_bytes is 1",
                   "operators: the candidate has FULLY_CONNECTED", "npu-qualcomm: ", "tflm: ", "ethos-u55: ", "edgetpu: "):  # fmt: skip
        assert reason in text


def test_a_quantized_flatbuffer_is_no_baseline(models: SimpleNamespace, tmp_path: Path) -> None:
    result = gate_data.run_gate(
        tmp_path, model=models.int8, baseline=flatbuffer_baseline(tmp_path, models.int8), data=models.data, config=config()
    )
    gate_data.refused(result)
    assert "baseline: the baseline's flatbuffer is quantized, in tensor" in result.report.reasons[0]


def test_both_models_run_the_signature_that_the_config_names(models: SimpleNamespace, tmp_path: Path) -> None:
    module = tf.Module()
    module.model = models.keras
    spec = tf.TensorSpec((None, gate_data.FEATURES), tf.float32, name="x")
    right = tf.function(lambda x: {"probabilities": models.keras(x)}).get_concrete_function(spec)
    wrong = tf.function(lambda x: {"probabilities": models.keras(-x)}).get_concrete_function(spec)
    folder = tmp_path / "baseline" / "Format-Serving"
    tf.saved_model.save(module, str(folder), signatures={"serving_default": wrong, "classify": right})
    candidate = tf.lite.TFLiteConverter.from_saved_model(str(folder), signature_keys=["serving_default", "classify"]).convert()
    result = gate_data.run_gate(
        tmp_path, model=candidate, baseline=str(folder.parent), data=models.data, config=config(signature="classify")
    )
    assert result.report.blessed
    assert overall(result) == pytest.approx((models.accuracy, models.accuracy), abs=1e-6)


def test_a_candidate_whose_only_signature_has_another_name_is_compared_with_none_but_that(models: SimpleNamespace, tmp_path: Path) -> None:
    module = tf.Module()
    module.model = models.keras
    spec = tf.TensorSpec((None, gate_data.FEATURES), tf.float32, name="x")
    other = tf.function(lambda x: {"probabilities": models.keras(x)}).get_concrete_function(spec)
    tf.saved_model.save(module, str(tmp_path / "other"), signatures={"classify": other})
    candidate = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "other"), signature_keys=["classify"]).convert()
    baseline = flatbuffer_baseline(tmp_path, models.float32)
    result = gate_data.run_gate(tmp_path, model=candidate, baseline=baseline, data=models.data, config=config())
    gate_data.refused(result)
    assert "its only signature is 'classify'; name it in GateConfig.signature" in result.report.reasons[0]


def test_an_unknown_signature_is_a_reason_that_lists_those_there(models: SimpleNamespace, tmp_path: Path) -> None:
    result = gate_data.run_gate(
        tmp_path,
        model=models.int8,
        baseline=flatbuffer_baseline(tmp_path, models.float32),
        data=models.data,
        config=config(signature="classify"),
    )
    gate_data.refused(result)
    assert "'classify'" in result.report.reasons[0] and "serving_default" in result.report.reasons[0]


def test_preprocessing_functions_of_the_baseline_reach_both_models(models: SimpleNamespace, tmp_path: Path) -> None:
    raw = {**models.data, "x": (models.data["x"] * 10 + 3).astype(np.float32)}
    module = tf.Module()
    module.model = models.keras
    spec = tf.TensorSpec((None, gate_data.FEATURES), tf.float32, name="x")
    signature = tf.function(lambda x: {"probabilities": models.keras(x)}).get_concrete_function(spec)
    standardize = tf.function(lambda x: {"x": (x - 3.0) / 10.0}).get_concrete_function(spec)
    folder = tmp_path / "baseline" / "Format-Serving"
    tf.saved_model.save(module, str(folder), signatures={"serving_default": signature, "standardize": standardize})
    result = gate_data.run_gate(
        tmp_path,
        model=models.int8,
        baseline=str(folder.parent),
        data=raw,
        config=config(preprocessing_function_names=("standardize",), slices=[Slice(feature_keys=("group",))]),
    )
    assert result.report.blessed, result.report.reasons
    baseline, candidate = overall(result)
    assert baseline == pytest.approx(models.accuracy, abs=1e-6)
    assert candidate == pytest.approx(baseline, abs=0.02)
    with pytest.raises(EdgeError, match="preprocessing_function_names normalize: the baseline's SavedModel holds no signature or layer"):
        gate_data.run_gate(
            tmp_path / "wrong",
            model=models.int8,
            baseline=str(folder.parent),
            data=raw,
            config=config(preprocessing_function_names=("normalize",)),
        )


def test_preprocessing_functions_need_a_saved_model_that_holds_them(models: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="preprocessing_function_names standardize: the baseline is no SavedModel"):
        gate_data.run_gate(
            tmp_path,
            model=models.int8,
            baseline=flatbuffer_baseline(tmp_path, models.float32),
            data=models.data,
            config=config(preprocessing_function_names=("standardize",)),
        )


def test_a_slice_of_text_that_reads_as_a_number_is_found(models: SimpleNamespace, tmp_path: Path) -> None:
    zone = np.array([b"1", b"02", b"north"], object)[np.arange(len(models.data["label"])) % 3]
    data = {**models.data, "zone": zone}
    result = gate_data.run_gate(
        tmp_path,
        model=models.int8,
        baseline=flatbuffer_baseline(tmp_path, models.float32),
        data=data,
        config=config(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.1), slices=[Slice(feature_values={"zone": "1"})]),
    )
    assert result.report.blessed, result.report.reasons
    assert {(m.slice, m.examples) for m in result.report.metrics} == {("Overall", len(zone)), ("zone=1", int((zone == b"1").sum()))}


STOCK = """
model_specs {{ name: "edge" model_type: "tf_generic" label_key: "label" }}
{baseline}
slicing_specs {{}} slicing_specs {{ feature_keys: "group" }}
options {{ include_default_metrics {{ value: false }} }}
metrics_specs {{ metrics {{ class_name: "SparseCategoricalAccuracy" threshold {{ value_threshold {{ lower_bound {{ value: 0.5 }} }} {change} }} }} }}
"""
BASELINE = 'model_specs { name: "float" model_type: "tf_generic" label_key: "label" is_baseline: true }'
CHANGE = "change_threshold { direction: HIGHER_IS_BETTER absolute { value: -0.05 } }"


@pytest.mark.parametrize("with_baseline", [True, False])
def test_tfxs_own_evaluator_takes_the_extractors(with_baseline: bool, models: SimpleNamespace, tmp_path: Path) -> None:
    text = STOCK.format(baseline=BASELINE if with_baseline else "", change=CHANGE if with_baseline else "")
    eval_config = text_format.Parse(text, config_pb2.EvalConfig())
    features = gate_data._schema(models.data)
    inputs = {
        "model": [gate_data.edge_model(tmp_path, models.int8)],
        "examples": [gate_data._examples(tmp_path / "examples", models.data)],
        "schema": [gate_data.schema_artifact(tmp_path / "schema", features)],
    }
    if with_baseline:
        models.keras.save(tmp_path / "trainer" / "Format-Serving")
        inputs["baseline_model"] = [gate_data.artifact(standard_artifacts.Model, tmp_path / "trainer", 7)]
    blessing = gate_data.artifact(standard_artifacts.ModelBlessing, tmp_path / "blessing", 10)
    evaluation = gate_data.artifact(standard_artifacts.ModelEvaluation, tmp_path / "evaluation", 11)
    context = StockEvaluator.Context(
        make_beam_pipeline_fn=lambda: beam.Pipeline(argv=list(gate_data.BEAM_ARGS)), tmp_dir=str(tmp_path / "tmp"), unique_id="1"
    )
    StockEvaluator(context).Do(
        inputs,
        {"blessing": [blessing], "evaluation": [evaluation]},
        {
            "eval_config": json_format.MessageToJson(eval_config, preserving_proto_field_name=True),
            "example_splits": '["eval"]',
            "module_path": stock_evaluator.__name__,
        },
    )
    assert blessing.get_int_custom_property("blessed") == 1
    result = tfma.load_eval_result(evaluation.uri, model_name="edge") if with_baseline else tfma.load_eval_result(evaluation.uri)
    (accuracy,) = [m[""][""]["sparse_categorical_accuracy"]["doubleValue"] for key, m in result.slicing_metrics if not key]
    assert accuracy == pytest.approx(models.accuracy, abs=0.02)


def test_extractors_for_the_stock_evaluator_refuse_what_they_would_get_wrong(models: SimpleNamespace, tmp_path: Path) -> None:
    lite = text_format.Parse(STOCK.format(baseline="", change="").replace("tf_generic", "tf_lite"), config_pb2.EvalConfig())
    shared = SimpleNamespace(model_path=str(tmp_path), model_name="edge", is_baseline=False)
    with pytest.raises(EdgeError, match="has model_type 'tf_lite'; give each 'tf_generic'"):
        stock_evaluator.EdgeEvaluatorExtractors(shared, lite, object())
    generic = text_format.Parse(STOCK.format(baseline="", change=""), config_pb2.EvalConfig())
    with pytest.raises(EdgeError, match="no flatbuffer at"):
        stock_evaluator.EdgeEvaluatorExtractors(shared, generic, object())
    with pytest.raises(EdgeError, match="the Evaluator has no schema"):
        stock_evaluator.EdgeEvaluatorExtractors(shared, generic, None)

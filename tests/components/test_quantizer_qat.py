"""Quantizer with quantization-aware training, what TFLiteExporter makes of it, and whether the gate lets it through."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gate_data
import numpy as np
import penguin_data
import penguins
import pytest
from example_shards import example, examples_artifact, schema, transform_graph_artifact
from exporting import files, model_artifact, run_exporter
from plain_flatbuffers import without_metadata
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Examples, Model, TransformGraph

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.quantizer import training
from tfx_edge.components.quantizer.component import Quantizer
from tfx_edge.components.quantizer.executor import Executor
from tfx_edge.litert import inspect
from tfx_edge.litert.packing import pack
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import (
    ConfigError,
    EdgeError,
    FineTuningConfig,
    GateConfig,
    Manifest,
    PreparationReport,
    QatConfig,
    QatReport,
    QuantizationConfig,
    Threshold,
)
from tfx_edge.schemas.artifact_types import QuantizationPlan
from tfx_edge.schemas.training import EarlyStopping

TUNING = FineTuningConfig(
    label_key=penguins.LABEL, epochs=3, batch_size=32, learning_rate=1e-3, early_stopping=EarlyStopping(patience=3, split="eval")
)
QAT = QuantizationConfig(io_type="int8", qat=QatConfig(fine_tuning=TUNING))
SCHEMA = schema(species=("INT",), **dict.fromkeys(penguins.FEATURES, ("FLOAT",)))


def columns() -> dict[str, np.ndarray[Any, Any]]:
    rows = penguin_data.rows()
    features = {name: np.array([row[name] for row in rows], np.float32) for name in penguins.FEATURES}
    return {**features, penguins.LABEL: np.array([int(row[penguins.LABEL]) for row in rows])}


def records() -> list[bytes]:
    return [example({k: [int(v) if k == penguins.LABEL else v] for k, v in row.items()}) for row in penguin_data.rows()]


def run(folder: Path, model: Model, config: QuantizationConfig = QAT, splits: tuple[str, ...] = ("train", "eval")) -> tuple[Any, Any]:
    """Runs Quantizer's executor on the penguins; without splits on no examples at all."""
    outputs = Model(), QuantizationPlan()
    for output, name in zip(outputs, ("model", "plan"), strict=True):
        output.uri = str(folder / name)
        Path(output.uri).mkdir(parents=True)  # as TFX does
    inputs: dict[str, Any] = {keys.FLOAT_MODEL: [model], keys.TRANSFORM_GRAPH: [transform_graph_artifact(folder / "graph", SCHEMA)]}
    if splits:
        shards = {"train": [records()[::2]], "eval": [records()[1::2]]}
        inputs[keys.EXAMPLES] = [examples_artifact(folder / "examples", {name: shards[name] for name in splits})]
    written = {keys.MODEL: [outputs[0]], keys.QUANTIZATION_PLAN: [outputs[1]]}
    Executor().Do(inputs, written, {keys.CONFIG: config.to_json(), keys.MODEL_FN: None, keys.MODULE_PATH: None})
    return outputs


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """The penguins' classifier, trained on every other one."""
    data, keras_model = columns(), penguins.build_model()
    keras_model.fit([data[name][::2, None] for name in penguins.FEATURES], data[penguins.LABEL][::2], epochs=30, verbose=0)
    return model_artifact(tmp_path_factory.mktemp("trainer") / "model", keras_model)


@pytest.fixture(scope="module")
def exported(model: Model, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Quantizer's outputs, the edge model that TFLiteExporter makes of them, and the flatbuffers that Quantizer looked at."""
    folder = tmp_path_factory.mktemp("chain")
    tried: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:  # it runs as it is, and what it gives is kept
        patch.setattr(training, "convert_model", lambda *a, **k: (tried.append(convert_model(*a, **k)), tried[-1])[1])
        trained, plan = run(folder / "quantizer", model)
    edge = run_exporter(folder / "export", trained, plan)
    return SimpleNamespace(
        trained=trained, plan=plan, tried=tried, files=files(edge.uri), flatbuffer=files(edge.uri)["Format-Serving/tflite"]
    )


def test_the_exported_model_computes_in_integers_what_the_trained_one_emulates(exported: SimpleNamespace) -> None:
    manifest = Manifest.from_json(exported.files["edge/manifest.json"])
    assert {"FULLY_CONNECTED", "SOFTMAX"} <= set(manifest.operators) <= {"CONCATENATION", "FULLY_CONNECTED", "QUANTIZE", "SOFTMAX"}
    assert {t.dtype for t in (*manifest.signature.inputs, *manifest.signature.outputs)} == {"int8"}
    data = columns()
    expected = float_models.load([exported.trained]).predict(data)["probabilities"]
    got = Runner(exported.flatbuffer)(data)["probabilities"]
    assert np.ptp(expected) > 0.9
    assert np.abs(got - expected).max() < 0.05
    assert (got.argmax(-1) == expected.argmax(-1)).mean() > 0.99


def test_the_gate_blesses_it_against_the_model_of_the_trainer(exported: SimpleNamespace, model: Model, tmp_path: Path) -> None:
    threshold = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02, lower_bound=0.95)
    result = gate_data.run_gate(
        tmp_path,
        model=exported.flatbuffer,
        baseline=model.uri,
        data=columns(),
        config=GateConfig(label_key=penguins.LABEL, thresholds=(threshold,)),
    )
    assert result.report.blessed, result.report.reasons
    assert result.files == ["BLESSED"] and gate_data.pushed(result) == ["tflite"]


def test_model_and_plan_give_the_same_bytes_each_time(exported: SimpleNamespace) -> None:
    _, tried = exported.tried  # the float flatbuffer is checked by its digest
    assert pack(inspect.parse(tried)) == without_metadata(exported.flatbuffer)


def test_plan_and_reports_say_what_was_done(exported: SimpleNamespace) -> None:
    planned, _ = plan_files.read(exported.plan.uri)
    plan, ranges = planned.plan, planned.ranges
    assert (plan.method, plan.recipe, plan.float_ops, plan.calibration_digest) == ("qat", (), (), None)
    assert plan.config == QAT and ranges.ranges == {}
    assert exported.plan.get_string_custom_property("method") == "qat"
    assert set(files(exported.trained.uri)) >= {"qat.json", "preparation.json"}
    report = QatReport.from_json(files(exported.trained.uri)["qat.json"])
    assert report.technique == "QAT" and all(layer.emulated for layer in report.layers)
    assert PreparationReport.from_json(files(exported.trained.uri)["preparation.json"]).rewrites == ()


def test_the_plan_fits_no_other_model(model: Model, exported: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="the quantization plan was made for the float flatbuffer"):
        run_exporter(tmp_path / "export", model, exported.plan)
    assert files(tmp_path / "export") == {}


@pytest.mark.parametrize(
    ("change", "splits", "text"),
    [
        ({}, (), "qat needs examples"),
        ({}, ("train",), "split 'eval'"),
        ({"layers": ("nowhere",)}, ("train", "eval"), "pattern 'nowhere' matches no layer"),
    ],
)
def test_what_stops_the_training_leaves_nothing_behind(
    model: Model, tmp_path: Path, change: dict[str, Any], splits: tuple[str, ...], text: str
) -> None:
    config = QAT.model_copy(update={"qat": QatConfig(fine_tuning=TUNING, **change)})
    with pytest.raises(EdgeError, match=text) as error:
        run(tmp_path, model, config, splits)
    assert "\n" not in str(error.value)
    assert files(tmp_path / "model") == files(tmp_path / "plan") == {}


def channel(kind: Any) -> Channel:
    return Channel(type=kind)


def test_what_qat_needs_is_asked_for_when_the_pipeline_is_built() -> None:
    with pytest.raises(EdgeError, match="qat without examples"):
        Quantizer(model=channel(Model), config=QAT)
    with pytest.raises(EdgeError, match="neither transform_graph nor schema"):
        Quantizer(model=channel(Model), config=QAT, examples=channel(Examples))
    Quantizer(model=channel(Model), config=QAT, examples=channel(Examples), transform_graph=channel(TransformGraph))
    with pytest.raises(ConfigError, match="qat with scheme 'float16'"):
        QuantizationConfig(scheme="float16", qat=QAT.qat)
    assert not QAT.needs_calibration

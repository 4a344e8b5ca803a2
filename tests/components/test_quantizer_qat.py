"""Quantizer with quantization-aware training, and what TFLiteExporter makes of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_shards import examples_artifact, transform_graph_artifact
from exporting import BEAM_ARGS, SCHEMA, files, keras_model, model_artifact, records, run_exporter, values
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Examples, Model, TransformGraph

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.quantizer.component import Quantizer
from tfx_edge.components.quantizer.executor import Executor
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import ConfigError, EdgeError, FineTuningConfig, Manifest, QatConfig, QatReport, QuantizationConfig
from tfx_edge.schemas.artifact_types import QuantizationPlan

TUNING = FineTuningConfig(
    label_key="species", epochs=2, batch_size=32, learning_rate=1e-3, loss="sparse_categorical_crossentropy", from_logits=True
)
QAT = QuantizationConfig(io_type="int8", qat=QatConfig(fine_tuning=TUNING))


def run(folder: Path, model: Model, config: QuantizationConfig = QAT, examples: bool = True) -> tuple[Model, QuantizationPlan]:
    outputs = Model(), QuantizationPlan()
    for output, name in zip(outputs, ("model", "plan"), strict=True):
        output.uri = str(folder / name)
        Path(output.uri).mkdir(parents=True)  # as TFX does
    inputs: dict[str, Any] = {keys.FLOAT_MODEL: [model], keys.TRANSFORM_GRAPH: [transform_graph_artifact(folder / "graph", SCHEMA)]}
    if examples:
        inputs[keys.EXAMPLES] = [examples_artifact(folder / "examples", {"train": [records(values())]})]
    context = BaseBeamExecutor.Context(beam_pipeline_args=list(BEAM_ARGS), tmp_dir=str(folder / "tmp"), unique_id="1")
    written = {keys.MODEL: [outputs[0]], keys.QUANTIZATION_PLAN: [outputs[1]]}
    Executor(context).Do(inputs, written, {keys.CONFIG: config.to_json(), keys.MODEL_FN: None, keys.MODULE_PATH: None})
    return outputs


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return model_artifact(tmp_path_factory.mktemp("trainer") / "model", keras_model())


@pytest.fixture(scope="module")
def trained(model: Model, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, QuantizationPlan]:
    return run(tmp_path_factory.mktemp("quantizer"), model)


def test_model_and_plan_are_all_that_the_exporter_needs_and_give_the_same_bytes(
    trained: tuple[Model, QuantizationPlan], tmp_path: Path
) -> None:
    first, second = (run_exporter(tmp_path / name, *trained) for name in ("first", "second"))
    assert files(first.uri) == files(second.uri)
    manifest = Manifest.from_json(files(first.uri)["edge/manifest.json"])
    flatbuffer = files(first.uri)["Format-Serving/tflite"]
    assert {"FULLY_CONNECTED"} <= set(manifest.operators) <= {"CONCATENATION", "FULLY_CONNECTED", "QUANTIZE"}
    assert {t.dtype for t in (*manifest.signature.inputs, *manifest.signature.outputs)} == {"int8"}
    expected = float_models.load([trained[0]]).predict(values())["logits"]  # what the trained model emulates
    got = Runner(flatbuffer)(values())["logits"]
    assert np.abs(got - expected).max() < 0.05 * np.ptp(expected)


def test_plan_and_report_say_what_was_done(trained: tuple[Model, QuantizationPlan]) -> None:
    plan, ranges, _ = plan_files.read(trained[1].uri)
    assert (plan.method, plan.recipe, plan.float_ops, plan.calibration_digest) == ("qat", (), (), None)
    assert plan.config == QAT and ranges.ranges == {}
    assert trained[1].get_string_custom_property("method") == "qat"
    report = QatReport.from_json(files(trained[0].uri)["qat.json"])
    assert report.technique == "QAT" and all(layer.quantized for layer in report.layers)


def test_the_plan_fits_no_other_model(model: Model, trained: tuple[Model, QuantizationPlan], tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="the quantization plan was made for the float flatbuffer"):
        run_exporter(tmp_path / "export", model, trained[1])
    assert files(tmp_path / "export") == {}


@pytest.mark.parametrize(
    ("change", "examples", "text"),
    [({}, False, "qat needs examples"), ({"layers": ("nowhere",)}, True, "pattern 'nowhere' matches no layer")],
)
def test_what_stops_the_training_leaves_nothing_behind(
    model: Model, tmp_path: Path, change: dict[str, Any], examples: bool, text: str
) -> None:
    config = QAT.model_copy(update={"qat": QatConfig(fine_tuning=TUNING, **change)})
    with pytest.raises(EdgeError, match=text):
        run(tmp_path, model, config, examples)
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

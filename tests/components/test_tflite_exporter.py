"""TFLiteExporter on artifacts built by hand: the edge model, and that it is the same every time."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exporting import calibration_artifact, files, keras_model, model_artifact, records, run_exporter, run_quantizer, values
from gate_data import shuffled_weights
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Model

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.tflite_exporter.component import TFLiteExporter
from tfx_edge.device.selftest import selftest_bundle
from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, ExportConfig, Manifest, QuantizationConfig
from tfx_edge.schemas.artifact_types import QuantizationPlan
from tfx_edge.schemas.versions import runtime_supports

TFLITE, MANIFEST, GOLDEN = "Format-Serving/tflite", "edge/manifest.json", "edge/golden.npz"
DESCRIBED = ExportConfig(description="Species of a penguin")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return model_artifact(tmp_path_factory.mktemp("trainer") / "model", keras_model())


@pytest.fixture(scope="module")
def quantized(model: Model, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, QuantizationPlan]:
    folder = tmp_path_factory.mktemp("quantizer")
    calibration = calibration_artifact(folder / "data", [records(values())])
    return run_quantizer(folder, model, calibration, QuantizationConfig(scheme="int8", io_type="int8"))


@pytest.fixture(scope="module")
def exported(quantized: tuple[Model, QuantizationPlan], tmp_path_factory: pytest.TempPathFactory) -> Model:
    return run_exporter(tmp_path_factory.mktemp("exporter") / "model", *quantized, DESCRIBED)


def manifest(artifact: Model) -> Manifest:
    return Manifest.from_json(files(artifact.uri)[MANIFEST])


def test_exporting_again_from_the_quantizers_input_gives_the_same_bytes(
    model: Model, quantized: tuple[Model, QuantizationPlan], exported: Model, tmp_path: Path
) -> None:
    assert set(files(exported.uri)) == {TFLITE, MANIFEST, GOLDEN, "edge/ops.json"}
    assert files(run_exporter(tmp_path / "from_input", model, quantized[1], DESCRIBED).uri) == files(exported.uri)


def test_the_int8_model_predicts_nearly_what_the_float_model_does(model: Model, exported: Model) -> None:
    expected = float_models.load([model]).predict(values())["logits"]
    got = Runner(files(exported.uri)[TFLITE])(values())["logits"]
    assert np.abs(got - expected).max() < 0.03 * (expected.max() - expected.min())


def test_the_manifest_tells_what_the_flatbuffer_is(quantized: tuple[Model, QuantizationPlan], exported: Model) -> None:
    flatbuffer, told = files(exported.uri)[TFLITE], manifest(exported)
    assert told.description == "Species of a penguin"
    assert told.digest == hashlib.sha256(flatbuffer).hexdigest()
    assert (told.size_bytes, told.gzip_bytes) == (len(flatbuffer), inspect.gzip_size(flatbuffer))
    assert told.signature == Runner(flatbuffer).signature
    assert {t.dtype for t in (*told.signature.inputs, *told.signature.outputs)} == {"int8"}
    assert (told.scheme, told.features) == ("int8", "transformed")
    assert told.operators == {"CONCATENATION": 1, "FULLY_CONNECTED": 3, "QUANTIZE": 3}
    planned, plan_digest = plan_files.read(quantized[1].uri)
    assert (told.float_model_digest, told.plan_digest) == (planned.plan.float_model_digest, plan_digest)
    assert runtime_supports(told.minimum_runtime)
    properties = [exported.get_string_custom_property("scheme"), exported.get_string_custom_property("digest")]
    sizes = [exported.get_int_custom_property("size_bytes"), exported.get_int_custom_property("gzip_bytes")]
    assert properties == ["int8", told.digest] and sizes == [told.size_bytes, told.gzip_bytes]


def test_without_a_plan_the_export_is_the_float_model(model: Model, exported: Model, tmp_path: Path) -> None:
    artifact = run_exporter(tmp_path / "float", model)
    told = manifest(artifact)
    assert (told.scheme, told.plan_digest) == ("float32", None)
    assert told.float_model_digest == manifest(exported).float_model_digest
    assert told.size_bytes < 1.2 * told.float_size_bytes + 2000  # which metadata adds
    expected = float_models.load([model]).predict(values())["logits"]
    np.testing.assert_allclose(Runner(files(artifact.uri)[TFLITE])(values())["logits"], expected, rtol=1e-4, atol=1e-5)


def test_the_exported_bundle_passes_its_self_test_and_one_with_other_weights_does_not(exported: Model, tmp_path: Path) -> None:
    shutil.copytree(exported.uri, tmp_path / "bundle")
    assert all(output.passed for output in selftest_bundle(tmp_path / "bundle"))
    (tmp_path / "bundle" / TFLITE).write_bytes(shuffled_weights(files(exported.uri)[TFLITE]))
    assert not all(output.passed for output in selftest_bundle(tmp_path / "bundle"))


def test_a_plan_for_another_model_is_refused(quantized: tuple[Model, QuantizationPlan], tmp_path: Path) -> None:
    other = model_artifact(tmp_path / "trainer", keras_model(seed=5))
    with pytest.raises(EdgeError, match="the quantization plan was made for the float flatbuffer"):
        run_exporter(tmp_path / "export", other, quantized[1])
    assert files(tmp_path / "export") == {}


@pytest.mark.parametrize("broken", ["not json", '{"config": {"scheme": "int7"}}'])
def test_a_plan_that_was_edited_into_nonsense_is_refused(
    model: Model, quantized: tuple[Model, QuantizationPlan], tmp_path: Path, broken: str
) -> None:
    plan = QuantizationPlan()
    plan.uri = str(tmp_path / "plan")
    Path(plan.uri).mkdir()
    for name, content in files(quantized[1].uri).items():
        (tmp_path / "plan" / name).write_bytes(content if name == "ranges.json" else broken.encode())
    with pytest.raises(EdgeError, match="^Quantization(Plan|Config)"):
        run_exporter(tmp_path / "export", model, plan)
    assert files(tmp_path / "export") == {}


def test_a_model_with_shuffled_weights_runs_and_predicts_something_else(exported: Model) -> None:
    flatbuffer = files(exported.uri)[TFLITE]
    good, damaged = Runner(flatbuffer)(values())["logits"], Runner(shuffled_weights(flatbuffer))(values())["logits"]
    assert good.shape == damaged.shape and np.isfinite(damaged).all()
    assert (good.argmax(axis=1) == damaged.argmax(axis=1)).mean() < 0.8


def test_the_config_is_stored_as_json_and_optional_inputs_may_be_left_out() -> None:
    component: Any = TFLiteExporter(model=Channel(type=Model), config=DESCRIBED)
    assert ExportConfig.from_json(component.exec_properties[keys.CONFIG]) == DESCRIBED
    assert set(component.inputs) == {keys.FLOAT_MODEL} and set(component.outputs) == {keys.MODEL}

"""TFLiteExporter and Quantizer: a fixed batch, several signatures, operators that LiteRT has not, files for targets."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras
from exporting import calibration_artifact, files, keras_model, model_artifact, records, run_exporter, run_quantizer, values
from tfx.types.standard_artifacts import Model

from tfx_edge.litert import inspect
from tfx_edge.litert.metadata import read_metadata
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets.side import find_python
from tfx_edge.schemas import ConversionConfig, EdgeError, ExportConfig, Manifest, OperatorsReport, QuantizationConfig
from tfx_edge.schemas.artifact_types import CalibrationData

TFLITE, MANIFEST, GOLDEN, OPS = "Format-Serving/tflite", "edge/manifest.json", "edge/golden.npz", "edge/ops.json"
ONE = ConversionConfig(batch_size=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return model_artifact(tmp_path_factory.mktemp("model"), keras_model())


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> CalibrationData:
    return calibration_artifact(tmp_path_factory.mktemp("calibration"), [records(values())])


@pytest.fixture(scope="module")
def fixed(model: Model, calibration: CalibrationData, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Model]:
    """Quantized for a batch of one: the edge model, and the plan that it was made by."""
    folder = tmp_path_factory.mktemp("fixed")
    config = QuantizationConfig(scheme="int8", io_type="int8", conversion=ONE)
    quantized, plan = run_quantizer(folder / "quantizer", model, calibration, config)
    return run_exporter(folder / "edge", quantized, plan), plan


def test_a_plan_for_a_fixed_batch_is_carried_out_for_it(model: Model, fixed: tuple[Model, Model]) -> None:
    bundle = files(fixed[0].uri)
    runner = Runner(bundle[TFLITE])
    assert runner.batch_size == 1
    assert {spec.shape[0] for spec in Manifest.from_json(bundle[MANIFEST]).signature.inputs} == {1}
    with np.load(Path(fixed[0].uri, GOLDEN)) as golden:
        assert {golden[name].shape[1] for name in golden if name.startswith("input:")} == {1}
    expected = run_predictions(model)
    assert np.abs(runner(values())["logits"] - expected).max() < 0.03 * (expected.max() - expected.min())


def run_predictions(model: Model) -> np.ndarray:
    loaded = keras.models.load_model(str(Path(model.uri, "Format-Serving")))
    inputs = [tf.reshape(values()[name], [-1, *shape[1:]]) for name, shape in zip(loaded.input_names, loaded.input_shape, strict=True)]
    return np.asarray(loaded(inputs))


def test_another_conversion_than_the_plans_is_refused(model: Model, fixed: tuple[Model, Model], tmp_path: Path) -> None:
    two = ExportConfig(conversion=ConversionConfig(batch_size=2))
    with pytest.raises(EdgeError, match="has batch_size=2.*the plan was made for batch_size=1.*set QuantizationConfig.conversion"):
        run_exporter(tmp_path / "edge", model, fixed[1], two)
    assert not files(tmp_path / "edge")


def test_without_a_plan_the_exports_own_conversion_counts(model: Model, tmp_path: Path) -> None:
    edge = run_exporter(tmp_path / "edge", model, config=ExportConfig(conversion=ONE))
    assert Runner(files(edge.uri)[TFLITE]).batch_size == 1


@pytest.mark.parametrize("scheme", ["float32", "dynamic_range"])
def test_several_signatures_are_exported_under_their_names(tmp_path: Path, scheme: str) -> None:
    module = tf.Module()
    module.kernel = tf.Variable(np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32))
    spec = tf.TensorSpec([None, 64], tf.float32, name="x")
    functions = {
        "embed": tf.function(lambda x: {"vector": x @ module.kernel}).get_concrete_function(spec),
        "score": tf.function(lambda x: {"logit": tf.reduce_sum(tf.nn.relu(x @ module.kernel), 1, keepdims=True)}).get_concrete_function(
            spec
        ),
    }
    tf.saved_model.save(module, str(tmp_path / "model" / "Format-Serving"), signatures=functions)
    source = Model()
    source.uri = str(tmp_path / "model")
    config = QuantizationConfig(scheme=scheme, conversion=ConversionConfig(signatures=("score", "embed")))
    edge = run_exporter(tmp_path / "edge", *run_quantizer(tmp_path / "quantizer", source, None, config))
    bundle = files(edge.uri)
    told = Manifest.from_json(bundle[MANIFEST])
    assert set(told.signatures) == {"embed", "score"} and told.signature == told.signatures["score"]
    assert [tensor.name for tensor in read_metadata(bundle[TFLITE]).outputs] == ["logit"]
    x = np.random.default_rng(1).normal(size=(20, 64)).astype(np.float32)
    for name, function in functions.items():
        [(output, expected)] = function(x=tf.constant(x)).items()
        got = Runner(bundle[TFLITE], signature=name)({"x": x})[output]
        assert np.abs(got - expected).mean() < 0.02 * np.std(expected)


def test_operators_of_tensorflow_are_exported_where_they_are_allowed_without_what_litert_would_have_to_run(tmp_path: Path) -> None:
    x = keras.Input((3, 3), name="x")
    determinant = keras.layers.Lambda(lambda t: tf.linalg.det(t)[:, None], name="determinant")(x)
    source = model_artifact(tmp_path / "model", keras.Model(x, keras.layers.Dense(2, name="y")(determinant)))
    with pytest.raises(EdgeError, match=r"tf.MatrixDeterminant \(at .*determinant\) needs Flex"):
        run_exporter(tmp_path / "refused", source)
    edge = run_exporter(tmp_path / "edge", source, config=ExportConfig(conversion=ConversionConfig(select_tf_ops=True)))
    bundle = files(edge.uri)
    assert set(bundle) == {TFLITE, MANIFEST, OPS}
    told = Manifest.from_json(bundle[MANIFEST])
    assert "custom:FlexMatrixDeterminant" in told.operators and [spec.name for spec in told.signature.inputs] == ["x"]
    if tf.__version__ >= "2.20":  # from then on TensorFlow's wheel brings no Flex kernels to its interpreter: nothing here can run it
        return
    interpreter = tf.lite.Interpreter(model_content=bundle[TFLITE])
    x_value = np.random.default_rng(0).normal(size=(1, 3, 3)).astype(np.float32)
    got = interpreter.get_signature_runner()(x=x_value)["y"]
    loaded = keras.models.load_model(str(Path(source.uri, "Format-Serving")))
    np.testing.assert_allclose(got, loaded(x_value), rtol=1e-4, atol=1e-5)


def test_the_operators_are_told_with_the_layers_that_they_compute(fixed: tuple[Model, Model]) -> None:
    bundle = files(fixed[0].uri)
    report = OperatorsReport.from_json(bundle[OPS])
    assert [op.kind for op in report.operators] == in_order(bundle[TFLITE])
    dense = [layer for layer in report.layers if layer.kind == "Dense"]
    assert len(dense) == 3
    for layer in dense:
        assert [report.operators[place].kind for place in layer.operators] == ["FULLY_CONNECTED"]
    assert report.totals.macs == sum(int(np.prod(w.shape)) for w in keras_model().weights if len(w.shape) == 2)


def in_order(flatbuffer: bytes) -> list[str]:
    return [kind for _, _, kind, _ in inspect.named_operators(inspect.parse(flatbuffer))]


@pytest.mark.skipif(find_python("tflite_micro") is None, reason="TensorFlow Lite Micro isn't installed in .venv/targets")
def test_a_bundle_for_a_microcontroller_holds_the_flatbuffer_as_source(fixed: tuple[Model, Model], model: Model, tmp_path: Path) -> None:
    quantized = Model()
    quantized.uri = model.uri
    config = ExportConfig(name="Penguins 2", targets=("tflm", "ethos-u55"))
    edge = run_exporter(tmp_path / "edge", quantized, fixed[1], config)
    bundle = files(edge.uri)
    assert {"edge/model.cc", "edge/model.h", "edge/model_vela.tflite"} <= set(bundle)
    assert b"AddFullyConnected" in bundle["edge/model.cc"] + bundle["edge/model.h"]
    assert Manifest.from_json(bundle[MANIFEST]).targets == ("tflm", "ethos-u55")

"""What the gate costs, against stock TFMA: the prediction step of one flatbuffer, and the evaluation of both models.

The model is MobileNet 0.25 on 96x96 images, its weights random. Stock TFMA has one flatbuffer to predict with, ours the
same one; evaluating, ours predicts with the float SavedModel and the int8 flatbuffer, stock with the flatbuffer alone.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
import tf_keras
from ai_edge_litert.interpreter import Interpreter
from google.protobuf import text_format
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.extractors import tflite_predict_extractor
from tensorflow_model_analysis.proto import config_pb2
from tfx_bsl.tfxio import tf_example_record

from benchmarks.figure import Figure, ratio
from tfx_edge.components.edge_validator.evaluation import evaluate
from tfx_edge.components.edge_validator.model_pair import Models
from tfx_edge.litert.convert import convert
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner, quantize
from tfx_edge.schemas import GateConfig, QuantizationConfig, Slice, Threshold

SIZE, CLASSES, PREDICTED, EVALUATED, BATCH = 96, 10, 256, 3072, 256
THREADS = 1  # as stock, and as the gate by default: Beam's workers are what uses the cores
BEAM_ARGS = ["--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=1"]

_SCHEMA = f"""
feature {{ name: "image" type: FLOAT presence {{ min_fraction: 1 }}
          shape {{ dim {{ size: {SIZE} }} dim {{ size: {SIZE} }} dim {{ size: 3 }} }} }}
feature {{ name: "label" type: INT presence {{ min_fraction: 1 }} shape {{ dim {{ size: 1 }} }} }}
feature {{ name: "group" type: INT presence {{ min_fraction: 1 }} shape {{ dim {{ size: 1 }} }} }}
"""


@dataclass(frozen=True)
class _Inputs:
    """The models in files, and images `[n, 96, 96, 3]` within what the int8 model was calibrated for."""

    saved_model: str
    flatbuffers: dict[str, Path]
    images: NDArray[np.float32]


def figures() -> Iterator[Figure]:
    """Six for the prediction step, float and int8 at three batch sizes, and one for an evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = _inputs(Path(folder))
        for kind, path in inputs.flatbuffers.items():
            for batch in (1, 32, 256):
                stock, ours = _stock_predictions(path, inputs.images, batch), _predictions(path, inputs.images, batch)
                _check_equal(kind, path.read_bytes(), inputs.images, batch, ours(), stock())
                # Seconds of stock for the same examples to ours are ours to stock in examples a second.
                yield ratio(f"gate.predict.{kind}.b{batch}", stock, ours, unit="x stock TFMA", goal=8, better="higher")
        yield _evaluation(Path(folder), inputs)


def _inputs(folder: Path) -> _Inputs:
    tf_keras.utils.set_random_seed(0)
    mobilenet = tf_keras.applications.MobileNet(input_shape=(SIZE, SIZE, 3), alpha=0.25, weights=None, classes=CLASSES)
    rng = np.random.default_rng(0)
    images = np.tanh(rng.normal(size=(PREDICTED, 1, 1, 3)) + rng.normal(size=(PREDICTED, SIZE, SIZE, 3))).astype(np.float32)
    for layer in mobilenet.layers:  # as they start, the model predicts the same whatever it sees
        if isinstance(layer, tf_keras.layers.BatchNormalization):
            layer.momentum = 0.0
    mobilenet(images[:64], training=True)
    image = tf_keras.Input((SIZE, SIZE, 3), name="image")
    tf_keras.Model(image, mobilenet(image)).save(folder / "float")
    floating = convert(str(folder / "float"))
    ranges = RangeCollector(floating)({"image": images})
    plan = make_plan(floating, QuantizationConfig(scheme="int8", io_type="int8"), ranges, "benchmark")
    paths = {}
    for kind, flatbuffer in (("float", floating), ("int8", apply_plan(floating, plan, ranges))):
        paths[kind] = folder / kind / "flatbuffer" / "tflite"
        paths[kind].parent.mkdir(parents=True)
        paths[kind].write_bytes(flatbuffer)
    return _Inputs(str(folder / "float"), paths, images)


def _batches(images: NDArray[np.float32], batch: int) -> Iterator[dict[str, Any]]:
    for at in range(0, len(images), batch):
        yield {tfma.FEATURES_KEY: {"image": images[at : at + batch]}}


def _predictions(flatbuffer: Path, images: NDArray[np.float32], batch: int) -> Callable[[], NDArray[Any]]:
    runner = Runner(flatbuffer.read_bytes(), num_threads=THREADS)
    [output] = runner.signature.output_names

    def predict() -> NDArray[Any]:
        extracts = [{**e, tfma.PREDICTIONS_KEY: runner(e[tfma.FEATURES_KEY])[output]} for e in _batches(images, batch)]
        return np.concatenate([e[tfma.PREDICTIONS_KEY] for e in extracts])

    return predict


def _stock_predictions(flatbuffer: Path, images: NDArray[np.float32], batch: int) -> Callable[[], NDArray[Any]]:
    config = _stock_config()
    step = tflite_predict_extractor.TFLitePredictionDoFn(config, {"": _stock_model(flatbuffer, config)})
    step.setup()

    def predict() -> NDArray[Any]:
        extracts = [e for batch_of in _batches(images, batch) for e in step.process(batch_of)]
        return np.concatenate([e[tfma.PREDICTIONS_KEY] for e in extracts])

    return predict


def _stock_model(flatbuffer: Path, config: config_pb2.EvalConfig) -> Any:
    return tfma.default_eval_shared_model(eval_saved_model_path=str(flatbuffer.parent), eval_config=config)


def _check_equal(kind: str, model: bytes, images: NDArray[np.float32], batch: int, ours: NDArray[Any], stock: NDArray[Any]) -> None:
    """Ours to a plain LiteRT loop, and float to stock, whose int8 predictions are of truncated inputs, without XNNPACK."""
    interpreter = Interpreter(model_content=model, num_threads=THREADS)
    [into], [out] = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(into["index"], (batch, SIZE, SIZE, 3))
    interpreter.allocate_tensors()
    (scale_in, zero_in), (scale_out, zero_out) = into["quantization"], out["quantization"]
    held = images if kind == "float" else np.clip(np.rint(images.astype(np.float64) / scale_in) + zero_in, -128, 127).astype(np.int8)
    expected = []
    for at in range(0, len(images), batch):
        interpreter.set_tensor(into["index"], held[at : at + batch])
        interpreter.invoke()
        expected.append(interpreter.get_tensor(out["index"]))
    plain = np.concatenate(expected)
    if kind == "float":
        np.testing.assert_allclose(ours, plain, rtol=1e-6)
        np.testing.assert_allclose(ours, stock, rtol=1e-4)  # other kernels add up in another order, layer by layer
    else:
        np.testing.assert_array_equal(quantize(ours, "int8", scale_out, zero_out), plain)


def _stock_config() -> config_pb2.EvalConfig:
    accuracy = config_pb2.MetricConfig(class_name=_METRIC)
    accuracy.threshold.value_threshold.lower_bound.value = 0
    return config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(label_key="label", model_type=tfma.constants.TF_LITE)],
        slicing_specs=[config_pb2.SlicingSpec(), config_pb2.SlicingSpec(feature_keys=["group"])],
        metrics_specs=[config_pb2.MetricsSpec(metrics=[config_pb2.MetricConfig(class_name="ExampleCount"), accuracy])],
    )


_METRIC = "SparseCategoricalAccuracy"


def _evaluation(folder: Path, inputs: _Inputs) -> Figure:
    """From records to TFMA's files, overall and in eight slices."""
    records = folder / "examples.tfrecord"
    labels = np.random.default_rng(1).integers(CLASSES, size=EVALUATED)
    with tf.io.TFRecordWriter(str(records)) as writer:
        for i in range(EVALUATED):
            example = tf.train.Example()
            example.features.feature["image"].float_list.value.extend(inputs.images[i % PREDICTED].ravel().tolist())
            example.features.feature["label"].int64_list.value.append(int(labels[i]))
            example.features.feature["group"].int64_list.value.append(i % 8)
            writer.write(example.SerializeToString())
    schema = text_format.Parse(_SCHEMA, schema_pb2.Schema())
    source = tf_example_record.TFExampleRecord(str(records), schema=schema, telemetry_descriptors=["tfx_edge"])
    # Stock TFMA won't run without the records themselves, and TFX's Evaluator hands them on.
    with_records = tf_example_record.TFExampleRecord(
        str(records), schema=schema, telemetry_descriptors=["tfx_edge"], raw_record_column_name=tfma.constants.ARROW_INPUT_COLUMN
    )

    def ours() -> None:
        config = GateConfig(
            label_key="label",
            thresholds=(Threshold(metric=_METRIC, lower_bound=0.0, max_drop=0.9),),
            slices=(Slice(feature_keys=("group",)),),
            batch_size=BATCH,
        )
        models = Models(str(inputs.flatbuffers["int8"]), inputs.saved_model, num_threads=THREADS)
        evaluated = evaluate(beam.Pipeline(argv=BEAM_ARGS), [source], schema, config, models, tempfile.mkdtemp(dir=folder))
        assert evaluated.examples == EVALUATED

    def stock() -> None:
        config = _stock_config()
        model = _stock_model(inputs.flatbuffers["int8"], config)
        with beam.Pipeline(argv=BEAM_ARGS) as p:
            _ = (
                p
                | with_records.BeamSource(batch_size=BATCH)
                | tfma.ExtractEvaluateAndWriteResults(
                    eval_config=config,
                    eval_shared_model=model,
                    output_path=tempfile.mkdtemp(dir=folder),
                    schema=schema,
                    tensor_adapter_config=with_records.TensorAdapterConfig(),
                )
            )

    return ratio("gate.evaluate", ours, stock, unit="x stock TFMA on the flatbuffer alone", goal=1.0, better="lower")

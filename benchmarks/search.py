"""Candidates of the accuracy search a minute, against running TFLiteConverter again for each.

A candidate leaves one layer of the example pipeline's digits model in float, and is measured on all 599 examples of the eval split.
Here a recipe is applied to a float flatbuffer that was converted once, and ranges that were collected once. The other side is what
TensorFlow's guide to selective quantization does: a converter of the Keras model, calibrated by the same 200 examples, in a
QuantizationDebugger with the layer on its deny-list. Both run in this process, whatever is made once in a process being made, and are
measured by the same runner. The second figure has the converter start from a SavedModel, which spares it the tracing of the model.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import statistics
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.figure import Figure, seconds
from tfx_edge.litert import inspect
from tfx_edge.litert.convert import convert
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Evaluator, Maker
from tfx_edge.litert.search.operators import quantized_operators
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.pipelines.digits.user_code import BATCH_SIZE, IMAGE, LABEL, build_model
from tfx_edge.pipelines.example_files import split_rows
from tfx_edge.schemas import QuantizationConfig

EPOCHS, CALIBRATED, RUNS = 20, 200, 5
LAYERS = ("conv_1", "conv_2", "hidden", "digit")
ALIKE = 0.01  # of accuracy: how far the two sides' models of one candidate may be apart

Split = tuple[NDArray[np.float32], NDArray[np.int64]]
Make = Callable[[str], bytes]


def figures() -> Iterator[Figure]:
    """Candidates a minute against the guide's, and against the same from a SavedModel."""
    train, held_out = _digits()
    model = _trained(train)
    with tempfile.TemporaryDirectory() as folder:
        from_keras_model(model).save(folder)
        float_model = convert(folder)
        evaluate = _evaluator(float_model, held_out)
        ours = _ours(float_model, train)
        for name, converter in (
            ("search.candidates", lambda: tf.lite.TFLiteConverter.from_keras_model(model)),
            ("search.candidates.saved_model", lambda: tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["serving_default"])),
        ):
            theirs = _theirs(converter, train)
            for layer in LAYERS:
                _check_alike(layer, ours(layer), theirs(layer), evaluate)
            yield _ratio(name, ours, theirs, evaluate, goal=20 if name == "search.candidates" else 5)


def _ratio(name: str, ours: Make, theirs: Make, evaluate: Evaluator, goal: float) -> Figure:
    ratios = []
    for _ in range(RUNS):
        time = {make: seconds(lambda make=make: [evaluate(make(layer)) for layer in LAYERS]) for make in (ours, theirs)}  # type: ignore[misc]
        ratios.append(time[theirs] / time[ours])
    spread = min(ratios), max(ratios)
    return Figure(name, statistics.median(ratios), "x the candidates a minute of TFLiteConverter", goal, "higher", spread, RUNS)


def _digits() -> tuple[Split, Split]:
    """Train and eval split of the example pipeline after its Transform."""
    images, labels = load_digits(return_X_y=True)
    parts = split_rows([{IMAGE: image / 16, LABEL: label} for image, label in zip(images, labels, strict=True)], LABEL)
    train, held_out = (
        (np.array([row[IMAGE] for row in part], np.float32).reshape(-1, 8, 8, 1), np.array([row[LABEL] for row in part], np.int64))
        for part in (parts["train"], parts["eval"])
    )
    return train, held_out


def _trained(train: Split) -> tf_keras.Model:
    tf_keras.utils.set_random_seed(0)
    model = build_model()
    model.compile(tf_keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy")
    model.fit(*train, batch_size=BATCH_SIZE, epochs=EPOCHS, verbose=0)
    return model


def _evaluator(float_model: bytes, held_out: Split) -> Evaluator:
    images, labels = held_out
    [output] = Runner(float_model).signature.output_names
    return Evaluator(float_model, {IMAGE: images}, output, lambda predictions: float(np.mean(predictions.argmax(-1) == labels)))


def _ours(float_model: bytes, train: Split) -> Make:
    make = Maker(float_model, RangeCollector(float_model)({IMAGE: train[0][:CALIBRATED]}))
    config = QuantizationConfig(scheme="int8")
    by_layer = {layer: op for layer in LAYERS for op in quantized_operators(float_model, make(config)) if f"/{layer}/" in op.tensor}
    return lambda layer: make(config.model_copy(update={"rules": (by_layer[layer].at("float32"),)}))


def _theirs(converter: Callable[[], tf.lite.TFLiteConverter], train: Split) -> Make:
    names = [name for name, _ in _outputs(converter().convert())]

    def examples() -> Iterator[dict[str, NDArray[np.float32]]]:
        for at in range(CALIBRATED):
            yield {IMAGE: train[0][at : at + 1]}

    def make(layer: str) -> bytes:
        again = converter()
        again.optimizations, again.representative_dataset = [tf.lite.Optimize.DEFAULT], examples
        left = tf.lite.experimental.QuantizationDebugOptions(denylisted_nodes=[name for name in names if f"/{layer}/" in name])
        debugger = tf.lite.experimental.QuantizationDebugger(converter=again, debug_options=left)
        return bytes(debugger.get_nondebug_quantized_model())

    return make


def _check_alike(layer: str, ours: bytes, theirs: bytes, evaluate: Evaluator) -> None:
    """Both leave the layer and no other in float, and both are as accurate."""
    for model in (ours, theirs):
        floats = {other for other in LAYERS for name, kind in _outputs(model) if f"/{other}/" in name and kind == schema.TensorType.FLOAT32}
        assert floats == {layer}, f"{layer}: {floats} are in float"
    accuracy = [evaluate(model).metric for model in (ours, theirs)]
    assert abs(accuracy[0] - accuracy[1]) <= ALIKE, f"{layer}: accuracies {accuracy}"


def _outputs(model: bytes) -> Iterator[tuple[str, Any]]:
    """Name and type of each operator's first output, conversions left out."""
    parsed = inspect.parse(model)
    for op in parsed.subgraphs[0].operators:
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) not in ("QUANTIZE", "DEQUANTIZE"):
            output = parsed.subgraphs[0].tensors[op.outputs[0]]
            yield output.name.decode(), output.type

"""Models that lose much as plain int8, each for a reason of its own, with data to calibrate on and to judge by.

They learn from made-up data in a second or two; where that leaves a model too well-behaved, weights are rescaled so that it computes
the same in float and is harder to quantize, as trained models in the field are.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray
from tf_keras import layers

Features = dict[str, NDArray[Any]]
Score = Callable[[NDArray[Any], NDArray[Any]], float]


@dataclass(frozen=True)
class HardModel:
    """A float flatbuffer and its data.

    Attributes:
        flatbuffer: one output.
        calibration: what a careless user would calibrate on.
        sample: a random sample of the training data, as CalibrationGen draws it.
        features: to judge by; the model saw none of it.
        truth: labels of `features`.
        score: of outputs and labels, 1 at best: accuracy, or R2 of a regression.
    """

    flatbuffer: bytes
    calibration: Features
    sample: Features
    features: Features
    truth: NDArray[Any]
    score: Score


def accuracy(outputs: NDArray[Any], labels: NDArray[Any]) -> float:
    """The share of examples whose largest output is the label's."""
    return float(np.mean(outputs.argmax(-1) == labels))


def r2(outputs: NDArray[Any], truth: NDArray[Any]) -> float:
    """The share of the truth's variance that the outputs explain."""
    return float(1 - np.mean((outputs.ravel().astype(np.float64) - truth) ** 2) / np.var(truth))


def scalar_inputs() -> HardModel:
    """One number an input and example, of which litert-quantizer's calibrator averages minimum and maximum into nothing."""
    names = ("length", "depth", "mass", "year")
    x, labels = _clusters(4)
    inputs = [tf_keras.Input((1,), name=name) for name in names]
    model = _trained(inputs, _classifier(layers.concatenate(inputs)), [column[:, None] for column in x.T], labels)
    return _hard(model, {name: column[:, None] for name, column in zip(names, x.T, strict=True)}, labels)


def sorted_calibration() -> HardModel:
    """Calibrated on the first rows of a file sorted by class: the others lie beyond the ranges, and are told apart by how far."""
    generator = np.random.default_rng(11)
    labels = generator.integers(0, 3, _ALL)
    x = (np.float32([1, 8, 16])[labels][:, None] + generator.normal(size=(_ALL, 8))).astype(np.float32)
    given = tf_keras.Input((8,), name="x")
    hard = _hard(_trained([given], _classifier(given), [x], labels, epochs=40), {"x": x}, labels)
    order = np.argsort(labels[:_TRAINED], kind="stable")[:100]
    return HardModel(hard.flatbuffer, {"x": x[order]}, hard.sample, hard.features, hard.truth, hard.score)


def outlier_channel() -> HardModel:
    """Two hidden channels a thousand times as large as the others, and read with weights a thousandth as large."""
    x, labels = _clusters(8)
    given = tf_keras.Input((8,), name="x")
    model = _trained([given], _classifier(given), [x], labels)
    scale = np.ones(16, np.float32)
    scale[:2] = 1000
    _rescale(model.get_layer("hidden"), model.get_layer("head"), scale)
    return _hard(model, {"x": x}, labels)


def depthwise_ranges() -> HardModel:
    """Depthwise filters whose weights and outputs span four orders of magnitude, as after folding BatchNormalization."""
    x, labels = _images()
    given = tf_keras.Input((8, 8, 1), name="image")
    hidden = layers.Conv2D(12, 3, activation="relu", name="stem")(given)
    hidden = layers.DepthwiseConv2D(3, activation="relu", name="depthwise")(hidden)
    hidden = layers.Conv2D(12, 1, activation="relu", name="pointwise")(hidden)
    model = _trained([given], layers.Dense(3, name="head")(layers.GlobalAveragePooling2D()(hidden)), [x], labels, epochs=30)
    scale = np.float32(10.0) ** np.random.default_rng(5).uniform(-2, 2, 12).astype(np.float32)
    _rescale(model.get_layer("depthwise"), model.get_layer("pointwise"), scale)
    return _hard(model, {"image": x}, labels)


def unbounded_activations() -> HardModel:
    """One example in two hundred holds values thousands of times as large as all others."""
    x, labels = _clusters(8)
    generator = np.random.default_rng(6)
    rare = generator.random(len(x)) < 0.005
    given = tf_keras.Input((8,), name="x")
    model = _trained([given], _classifier(given), [x[~rare]], labels[~rare])
    wild = np.where(rare[:, None], x * generator.uniform(1000, 3000, size=(len(x), 1)).astype(np.float32), x)
    wild[0] = x[0] * 2000  # so that every sample has one
    return _hard(model, {"x": wild}, labels, always=0)


def attention() -> HardModel:
    """LayerNorm takes a large common offset away and leaves what is small beside it; then attention with softmax."""
    generator = np.random.default_rng(7)
    labels = generator.integers(0, 3, _ALL)
    tokens = generator.normal(size=(_ALL, 6, 8)).astype(np.float32)
    at = generator.integers(0, 6, _ALL)
    tokens[np.arange(_ALL), at] += 4 * np.eye(8, dtype=np.float32)[labels]
    given = tf_keras.Input((6, 8), name="tokens")
    normal = layers.LayerNormalization(name="norm")(given)
    query, key, value = (layers.Dense(8, name=name)(normal) for name in ("query", "key", "value"))
    weights = layers.Softmax()(layers.Dot((2, 2))([query, key]))
    attended = layers.Add()([layers.Dot((2, 1))([weights, value]), normal])
    model = _trained([given], layers.Dense(3, name="head")(layers.GlobalMaxPooling1D()(attended)), [tokens + 200], labels, epochs=40)
    return _hard(model, {"tokens": tokens + 200}, labels)


def embedding_table() -> HardModel:
    """A row for padding, far larger than the words' and cancelled behind them, sets the scale of the whole table."""
    generator = np.random.default_rng(8)
    words = generator.integers(1, 60, size=(_ALL, 10)).astype(np.int32)
    kinds = generator.integers(0, 3, 60)
    labels = np.array([np.bincount(kinds[row], minlength=3).argmax() for row in words])
    words[:, 9] = 0
    given = tf_keras.Input((10,), name="words", dtype="int32")
    table = layers.Embedding(60, 8, name="table")
    pooled = layers.Dense(16, "relu", name="hidden")(layers.Flatten()(table(given)))
    model = _trained([given], layers.Dense(3, name="head")(pooled), [words], labels, epochs=40)
    rows = table.get_weights()[0]
    hidden = model.get_layer("hidden")
    kernel, bias = hidden.get_weights()
    far = np.full(8, 300, np.float32)
    bias = bias + (rows[0] - far) @ kernel[-8:]
    rows[0] = far
    table.set_weights([rows])
    hidden.set_weights([kernel, bias])
    return _hard(model, {"words": words}, labels)


def lstm() -> HardModel:
    """It has to keep what it saw first; converts, with a batch of one, to one operator, whose state is kept in float."""
    return _recurrent(layers.LSTM(24, name="memory"))


def gru() -> HardModel:
    """The same as a loop (WHILE), which can't be calibrated from outside."""
    return _recurrent(layers.GRU(24, name="memory"))


def _recurrent(memory: Any) -> HardModel:
    generator = np.random.default_rng(9)
    series = generator.normal(scale=0.3, size=(_ALL, 12, 3)).astype(np.float32)
    labels = generator.integers(0, 3, _ALL)
    series[:, 0] += 2 * np.eye(3, dtype=np.float32)[labels]
    given = tf_keras.Input((12, 3), name="series")
    model = _trained([given], layers.Dense(3, name="head")(memory(given)), [series], labels, epochs=25)
    return _hard(model, {"series": series}, labels, batch=1)


def tiny_variance() -> HardModel:
    """A regression whose answers differ by thousandths of their size."""
    x = np.random.default_rng(10).normal(size=(_ALL, 8)).astype(np.float32)
    truth = np.tanh(x[:, 0] + x[:, 1] * x[:, 2])
    given = tf_keras.Input((8,), name="x")
    hidden = layers.Dense(32, "relu")(layers.Dense(32, "relu")(given))
    model = tf_keras.Model(given, layers.Dense(1, name="head")(hidden))
    tf_keras.utils.set_random_seed(0)
    model.compile(tf_keras.optimizers.Adam(1e-2), "mse")
    model.fit(x[:_TRAINED], truth[:_TRAINED], epochs=40, batch_size=64, verbose=0)
    kernel, bias = model.get_layer("head").get_weights()
    model.get_layer("head").set_weights([kernel, bias + 500])
    hard = _hard(model, {"x": x}, truth + 500)
    return HardModel(hard.flatbuffer, hard.calibration, hard.sample, hard.features, hard.truth, r2)


HARD_MODELS: Mapping[str, Callable[[], HardModel]] = {
    make.__name__: make
    for make in (
        scalar_inputs,
        sorted_calibration,
        outlier_channel,
        depthwise_ranges,
        unbounded_activations,
        attention,
        embedding_table,
        lstm,
        gru,
        tiny_variance,
    )
}

_ALL, _TRAINED, _SAMPLE = 4000, 800, 200


def _clusters(width: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 3, _ALL)
    centres = generator.normal(scale=2, size=(3, width))
    return (centres[labels] + generator.normal(size=(_ALL, width))).astype(np.float32), labels


def _images() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Noise with horizontal, vertical or diagonal stripes."""
    generator = np.random.default_rng(4)
    labels = generator.integers(0, 3, _ALL)
    row, column = np.mgrid[:8, :8]
    stripes = np.stack([row % 3 == 0, column % 3 == 0, (row + column) % 3 == 0]).astype(np.float32)
    images = stripes[labels] + generator.normal(scale=0.5, size=(_ALL, 8, 8))
    return images[..., None].astype(np.float32), labels


def _classifier(given: Any) -> Any:
    return layers.Dense(3, name="head")(layers.Dense(16, "relu", name="hidden")(given))


def _trained(inputs: list[Any], output: Any, x: list[NDArray[Any]], labels: NDArray[Any], epochs: int = 10) -> tf_keras.Model:
    model = tf_keras.Model(inputs, output)
    generator = np.random.default_rng(0)  # instead of the layers' own beginnings, which depend on what was made before
    for weight in model.trainable_weights:
        if len(weight.shape) > 1:
            limit = np.sqrt(6 / (np.prod(weight.shape[:-1]) + weight.shape[-1]))
            weight.assign(generator.uniform(-limit, limit, weight.shape))
    tf_keras.utils.set_random_seed(0)
    model.compile(tf_keras.optimizers.Adam(1e-2), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit([values[:_TRAINED] for values in x], labels[:_TRAINED], epochs=epochs, batch_size=64, verbose=0)
    return model


def _rescale(layer: Any, following: Any, scale: NDArray[np.float32]) -> None:
    """Multiplies the channels of a layer with ReLU, and divides what reads them: the same function, up to rounding."""
    depthwise = isinstance(layer, layers.DepthwiseConv2D)
    kernel, bias = layer.get_weights()
    layer.set_weights([kernel * (scale[:, None] if depthwise else scale), bias * scale])
    kernel, bias = following.get_weights()
    following.set_weights([kernel / scale[:, None], bias])


def _hard(
    model: tf_keras.Model, features: Features, labels: NDArray[Any], *, batch: int | None = None, always: int | None = None
) -> HardModel:
    rows = np.random.default_rng(1).permutation(_TRAINED)[:_SAMPLE]
    if always is not None:
        rows[0] = always
    sample = {name: values[rows] for name, values in features.items()}
    held_out = {name: values[_TRAINED:] for name, values in features.items()}
    return HardModel(_flatbuffer(model, batch), sample, sample, held_out, labels[_TRAINED:], accuracy)


def _flatbuffer(model: tf_keras.Model, batch: int | None) -> bytes:
    module = tf.Module()
    module.model = model
    names = model.input_names
    module.function = tf.function(lambda **features: {"output": model([features[name] for name in names])})
    specs = {n: tf.TensorSpec((batch, *t.shape[1:]), t.dtype, name=n) for n, t in zip(names, model.inputs, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        tf.saved_model.save(module, path, signatures={"serving_default": module.function.get_concrete_function(**specs)})
        flatbuffer: bytes = tf.lite.TFLiteConverter.from_saved_model(path, signature_keys=["serving_default"]).convert()
    return flatbuffer

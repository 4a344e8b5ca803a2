"""Small Keras models whose outputs are the layers that real models are made of, a branch each.

Several branches share a model, since each model costs a conversion. Weights are drawn by NumPy: the same on both lines.
"""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tf_keras
from numpy.typing import NDArray
from tf_keras import layers

from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.preparation import prepare

Branches = dict[str, Any]
EXAMPLES = 200


@dataclass(frozen=True)
class Zoo:
    """A converted model.

    Attributes:
        keras_model: after edge preparation.
        flatbuffer: in float.
        features: `[n, ...]` by input name.
        branches: name of the output by what it shows.
        expected: what the Keras model gives, by output name.
    """

    keras_model: tf_keras.Model
    flatbuffer: bytes
    features: dict[str, NDArray[Any]]
    branches: dict[str, str]
    expected: dict[str, NDArray[Any]]


def convolutions() -> tuple[list[Any], Branches]:
    image = layers.Input((8, 8, 3), name="image")
    block = layers.ReLU(name="conv_relu")(
        layers.BatchNormalization(name="conv_norm")(layers.Conv2D(4, 3, padding="same", name="conv")(image))
    )
    depthwise = layers.DepthwiseConv2D(3, padding="same", name="depthwise")(block)
    depthwise = layers.ReLU(6.0, name="depthwise_relu")(layers.BatchNormalization(name="depthwise_norm")(depthwise))
    shared = layers.Conv2D(3, 3, padding="same", name="shared")
    nested = tf_keras.Sequential([layers.Conv2D(4, 1, activation="relu", input_shape=(8, 8, 4)), layers.MaxPooling2D()], name="nested")
    read_twice = layers.Conv2D(4, 1, name="read_twice")(image)
    norm = layers.BatchNormalization(name="read_twice_norm")(read_twice)
    flat = layers.Flatten(name="flat")(image)
    dense = layers.BatchNormalization(name="dense_norm")(layers.Dense(6, name="dense")(flat))
    scalar = layers.Input((1,), name="scalar")
    return [image, scalar], {
        "Conv2D, BatchNormalization, ReLU": block,
        "DepthwiseConv2D, BatchNormalization, ReLU6": depthwise,
        "SeparableConv2D": layers.SeparableConv2D(6, 3, activation="relu", name="separable")(image),
        "Conv2DTranspose": layers.Conv2DTranspose(4, 3, strides=2, padding="same", name="transposed")(block),
        "Conv2D with dilation": layers.Conv2D(4, 3, dilation_rate=2, name="dilated")(image),
        "Conv2D with groups": layers.Conv2D(4, 3, groups=2, name="grouped")(block),
        "Dense, BatchNormalization": dense,
        "MaxPooling2D": layers.MaxPooling2D(name="max_pool")(block),
        "AveragePooling2D": layers.AveragePooling2D(name="average_pool")(block),
        "GlobalAveragePooling2D": layers.GlobalAveragePooling2D(name="global_average")(block),
        "GlobalMaxPooling2D": layers.GlobalMaxPooling2D(name="global_max")(block),
        "UpSampling2D, nearest": layers.UpSampling2D(name="nearest")(image),
        "UpSampling2D, bilinear": layers.UpSampling2D(interpolation="bilinear", name="bilinear")(image),
        "Resizing": layers.Resizing(5, 5, name="resizing")(image),
        "ZeroPadding2D, Cropping2D": layers.Cropping2D(2, name="cropped")(layers.ZeroPadding2D(1, name="padded")(image)),
        "Concatenate of several inputs": layers.Concatenate(name="joined")([layers.Dense(3, name="widened")(scalar), dense]),
        "BatchNormalization read with its input": layers.Concatenate(name="both")([read_twice, norm]),
        "Reshape, Permute": layers.Permute((2, 1), name="permuted")(layers.Reshape((64, 3), name="reshaped")(image)),
        "Add of a shared layer's calls": layers.Add(name="added")([shared(image), shared(shared(image))]),
        "Nested model": nested(block),
        "LayerNormalization": layers.LayerNormalization(name="layer_norm")(image),
        "LeakyReLU": layers.LeakyReLU(0.1, name="leaky")(read_twice),
        "PReLU": layers.PReLU(shared_axes=[1, 2], alpha_initializer="he_normal", name="prelu")(read_twice),
        "swish": layers.Activation("swish", name="swish")(read_twice),
        "gelu": layers.Activation("gelu", name="gelu")(read_twice),
        "Softmax": layers.Softmax(name="softmax")(dense),
    }


def sequences() -> tuple[list[Any], Branches]:
    series = layers.Input((8, 4), name="series")
    words = layers.Input((8,), dtype="int32", name="words")
    vectors, averaged = (layers.Embedding(12, 6, name=name)(words) for name in ("table", "topics"))
    conv = layers.Conv1D(4, 3, name="conv")(series)
    deep = layers.LSTM(5, return_sequences=True, name="first")(series)
    query, key = layers.Dense(4, name="query")(series), layers.Dense(4, name="key")(series)
    return [series, words], {
        "Conv1D, BatchNormalization, ReLU": layers.ReLU(name="conv_relu")(layers.BatchNormalization(name="conv_norm")(conv)),
        "SeparableConv1D": layers.SeparableConv1D(4, 3, name="separable")(series),
        "Conv1DTranspose": layers.Conv1DTranspose(3, 3, strides=2, name="transposed")(series),
        "MaxPooling1D": layers.MaxPooling1D(name="max_pool")(conv),
        "LSTM": layers.LSTM(5, name="lstm")(series),
        "LSTM behind LSTM, Dense": layers.Dense(3, name="head")(layers.LSTM(4, name="second")(deep)),
        "Bidirectional LSTM": layers.Bidirectional(layers.LSTM(3, return_sequences=True), name="both_ways")(series),
        "GRU": layers.GRU(5, name="gru")(series),
        "SimpleRNN": layers.SimpleRNN(5, name="rnn")(series),
        "MultiHeadAttention": layers.MultiHeadAttention(2, 4, name="attention")(series, series),
        "Dot": layers.Dot((2, 2), name="dot")([query, key]),
        "LayerNormalization of steps": layers.LayerNormalization(name="step_norm")(series),
        "Embedding": vectors,
        "Embedding, GlobalAveragePooling1D, Dense": layers.Dense(3, name="topic")(
            layers.GlobalAveragePooling1D(name="mean_word")(averaged)
        ),
    }


def volumes() -> tuple[list[Any], Branches]:
    volume = layers.Input((4, 6, 6, 2), name="volume")
    conv = layers.Conv3D(3, 3, name="conv")(volume)
    sequence = layers.Input((6, 4), name="sequence")
    shared = layers.Dense(4, activation="tanh", name="shared")
    return [volume, sequence], {
        "Conv3D, BatchNormalization, ReLU": layers.ReLU(name="conv_relu")(layers.BatchNormalization(name="conv_norm")(conv)),
        "Conv3DTranspose": layers.Conv3DTranspose(2, 2, strides=2, name="transposed")(volume),
        "Dense on steps": layers.Dense(4, activation="relu", name="each")(sequence),
        "Dense, shared": layers.Add(name="added")([sequence, shared(shared(sequence))]),
    }


BUILDERS = (convolutions, sequences, volumes)


@functools.cache
def zoo(build: Callable[[], tuple[list[Any], Branches]]) -> Zoo:
    """Prepares and converts a model, once a process."""
    inputs, branches = build()
    model = tf_keras.Model(inputs, list(branches.values()), name=build.__name__)
    generator = np.random.default_rng(1)
    for variable in model.variables:
        if variable.dtype.is_floating:
            variable.assign(_weights(generator, variable.name.split("/")[-1].split(":")[0], tuple(variable.shape)))
    prepared, _ = prepare(model)
    features = {tensor.name: _examples(generator, tensor) for tensor in prepared.inputs}
    float_model = from_keras_model(prepared)
    return Zoo(
        keras_model=prepared,
        flatbuffer=convert_model(float_model, build.__name__),
        features=features,
        branches=dict(zip(branches, prepared.output_names, strict=True)),
        expected=float_model.predict(features),
    )


def _weights(generator: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """As in trained models: no bias or shift is 0, no scale 1."""
    if name in ("gamma", "moving_variance", "alpha"):
        return generator.uniform(0.3, 1.5, shape)
    fan_in = max(1.0, float(np.prod(shape[:-1]))) if len(shape) > 1 else 25.0
    return generator.normal(size=shape) * (2 / fan_in) ** 0.5


def _examples(generator: np.random.Generator, tensor: Any) -> NDArray[Any]:
    shape = (EXAMPLES, *tensor.shape[1:])
    if tensor.dtype.is_integer:
        return generator.integers(0, 12, shape).astype(tensor.dtype.name)
    return generator.uniform(-1, 1, shape).astype(tensor.dtype.name)

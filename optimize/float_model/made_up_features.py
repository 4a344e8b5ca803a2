"""Made-up inputs on which a model and its prepared form must agree, where no real examples are given."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

Layer: TypeAlias = tf_keras.layers.Layer

COUNT = 16  # enough that each category of a small encoding is likely to come up
_UNKNOWN_DIMENSION = 5  # of a length that the model leaves open


def make_examples(model: tf_keras.Model, count: int = COUNT, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Random features that the layers behind each input can take: integers below an encoding's size, numbers around a mean.

    Args:
        model: flat, with no inputs of text.
        count: of examples.
        seed: the same seed gives the same features.

    Returns:
        `[count, ...]` each, by input name.
    """
    generator = np.random.default_rng(seed)
    features = {}
    for name, tensor in zip(model.input_names, model.inputs, strict=True):
        shape = (count, *(d or _UNKNOWN_DIMENSION for d in tensor.shape[1:]))
        dtype = tf.as_dtype(tensor.dtype)
        low, high = _range(model, name, dtype)
        if dtype.is_bool:
            features[name] = generator.random(shape) < 0.5
        elif dtype.is_integer:
            features[name] = generator.integers(int(low), int(high) + 1, shape).astype(dtype.as_numpy_dtype)
        else:
            features[name] = generator.uniform(low, high, shape).astype(dtype.as_numpy_dtype)
    return features


def _range(model: tf_keras.Model, name: str, dtype: tf.DType) -> tuple[float, float]:
    """Bounds of an input, both included, from the layers that it reaches through tensors of its own kind of number."""
    limits = [limit for layer in _readers(model, name, dtype) for limit in _limits(layer)]
    strict = [(low, high) for low, high, must in limits if must]
    if strict:
        return max(low for low, _ in strict), min(high for _, high in strict)
    if limits:
        return limits[0][:2]
    return (0, 3) if dtype.is_integer else (-1.0, 1.0)


def _readers(model: tf_keras.Model, name: str, dtype: tf.DType) -> Iterator[Layer]:
    reached = {id(model.get_layer(name).output)}
    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            if any(id(tensor) in reached for tensor in node.keras_inputs):
                yield node.layer
                outputs = [t for t in tf.nest.flatten(node.outputs) if t.dtype.is_integer == dtype.is_integer]
                reached |= {id(tensor) for tensor in outputs if not node.layer.weights}


def _limits(layer: Layer) -> Iterator[tuple[float, float, bool]]:
    """The values that a layer makes sense of, and whether it fails on others."""
    if isinstance(layer, tf_keras.layers.CategoryEncoding):
        yield 0, layer.num_tokens - 1, True
    elif isinstance(layer, tf_keras.layers.Embedding):
        yield 0, layer.input_dim - 1, True
    elif isinstance(layer, tf_keras.layers.IntegerLookup):
        tokens = [int(token) for token in layer.get_vocabulary(include_special_tokens=False)]
        yield min(tokens) - 1, max(tokens) + 1, False
    elif isinstance(layer, tf_keras.layers.Discretization):
        boundaries = np.asarray(layer.bin_boundaries)
        yield float(boundaries.min()) - 1, float(boundaries.max()) + 1, False
    elif isinstance(layer, tf_keras.layers.Normalization) and not layer.invert:
        mean, deviation = np.asarray(layer.mean), np.sqrt(np.asarray(layer.variance))
        yield float((mean - 2 * deviation).min()), float((mean + 2 * deviation).max()), False
    elif isinstance(layer, tf_keras.layers.Rescaling) and np.all(np.asarray(layer.scale)):
        ends = [(end - np.asarray(layer.offset)) / np.asarray(layer.scale) for end in (-1.0, 1.0)]
        yield float(np.min(ends)), float(np.max(ends)), False

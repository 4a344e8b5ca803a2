"""Made-up tf.Examples that fit a raw feature spec, to compare two models that must be equal on any input."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


def make(feature_spec: Mapping[str, Any], count: int, seed: int = 0) -> list[bytes]:
    """Serialized tf.Examples with random values: floats around zero, small integers, short strings.

    Args:
        feature_spec: by name, FixedLenFeature or VarLenFeature, as TFT's `raw_feature_spec` gives it; of a VarLenFeature
            every example gets one value.
        count: how many.
        seed: of the values.
    """
    generator = np.random.default_rng(seed)
    return [_example(feature_spec, generator).SerializeToString() for _ in range(count)]


def _example(feature_spec: Mapping[str, Any], generator: np.random.Generator) -> tf.train.Example:
    features = {}
    for name, spec in sorted(feature_spec.items()):
        size = int(np.prod(spec.shape)) if isinstance(spec, tf.io.FixedLenFeature) else 1
        if spec.dtype == tf.string:
            value = [f"token{v}".encode() for v in generator.integers(0, 8, size)]
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
        elif spec.dtype.is_integer:
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=generator.integers(0, 8, size)))
        else:
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=generator.normal(size=size)))
    return tf.train.Example(features=tf.train.Features(feature=features))

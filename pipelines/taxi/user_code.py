"""preprocessing_fn and run_fn: a deep part on numbers, a wide part on categories."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from tfx_edge.pipelines.taxi.data import LABEL
from tfx_edge.pipelines.training import train_and_save

NUMBERS = ("trip_miles", "fare", "trip_seconds")
STRINGS = {"payment_type": 4, "company": 6}  # words in each vocabulary
INTEGERS = {"trip_start_hour": 24, "trip_start_day": 8}
_UNKNOWN = 1  # bucket for words that the vocabulary doesn't hold


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Fills in what is missing, looks words up, and leaves the numbers' scaling to the model."""
    outputs = {name: _dense(inputs[name], 0.0) for name in NUMBERS}
    for name, words in STRINGS.items():
        outputs[name] = tft.compute_and_apply_vocabulary(_dense(inputs[name], ""), top_k=words, num_oov_buckets=_UNKNOWN)
    for name, buckets in INTEGERS.items():
        outputs[name] = tf.clip_by_value(_dense(inputs[name], 0), 0, buckets - 1)
    outputs[LABEL] = _dense(inputs[LABEL], 0)
    return outputs


def _dense(values: Any, default: Any) -> tf.Tensor:
    """`[batch]` float32, int64 or string, with a default where a value is missing."""
    if isinstance(values, tf.sparse.SparseTensor):
        shape = tf.cast(tf.stack([values.dense_shape[0], 1]), tf.int64)
        values = tf.sparse.to_dense(tf.sparse.SparseTensor(values.indices, values.values, shape), tf.cast(default, values.dtype))
    values = tf.reshape(values, [-1])
    return tf.cast(values, tf.float32) if isinstance(default, float) else values


def build_model() -> tf_keras.Model:
    """Wide and deep (Cheng et al. 2016): Normalization and Dense beside CategoryEncoding."""
    layers = tf_keras.layers
    numbers = {name: tf_keras.Input((1,), name=name) for name in NUMBERS}
    sizes = {**{name: words + _UNKNOWN for name, words in STRINGS.items()}, **INTEGERS}
    categories = {name: tf_keras.Input((1,), name=name, dtype="int32") for name in sizes}
    deep = layers.concatenate([layers.Normalization(axis=None, name=f"normalize_{name}")(x) for name, x in numbers.items()])
    for units in (32, 16):
        deep = layers.Dense(units, activation="relu")(deep)
    wide = layers.concatenate([layers.CategoryEncoding(num_tokens=size)(categories[name]) for name, size in sizes.items()])
    tip = layers.Dense(1, activation="sigmoid", name="tip")(layers.concatenate([deep, wide]))
    return tf_keras.Model({**numbers, **categories}, tip, name="taxi")


def run_fn(fn_args: Any) -> None:
    """Fits the Normalization layers, then trains and saves the model."""
    tf_keras.utils.set_random_seed(0)
    model = build_model()
    spec = tft.TFTransformOutput(fn_args.transform_output).transformed_feature_spec()
    records = tf.data.TFRecordDataset(tf.io.gfile.glob(fn_args.train_files), "GZIP").batch(256)
    examples = records.map(lambda serialized: tf.io.parse_example(serialized, spec))
    for name in NUMBERS:
        model.get_layer(f"normalize_{name}").adapt(examples.map(lambda features, name=name: tf.reshape(features[name], [-1, 1])))
    model.compile(tf_keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=["binary_accuracy"])
    train_and_save(model, fn_args, LABEL, epochs=6)

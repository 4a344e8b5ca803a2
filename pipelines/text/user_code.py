"""preprocessing_fn and run_fn: words to tokens, Embedding, bidirectional LSTM."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from tfx_edge.pipelines.text.data import LABEL
from tfx_edge.pipelines.training import train_and_save

WORDS, LENGTH = 60, 14


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Tokens `[14]`: 0 pads, 1 stands for unknown words."""
    words = tf.strings.split(tf.reshape(inputs["review"], [-1])).to_sparse()
    tokens = tft.compute_and_apply_vocabulary(words, top_k=WORDS, num_oov_buckets=0, default_value=-1)
    padded = tf.RaggedTensor.from_sparse(tf.sparse.SparseTensor(tokens.indices, tokens.values + 2, tokens.dense_shape))
    return {"tokens": padded.to_tensor(0, shape=(None, LENGTH)), LABEL: inputs[LABEL]}


def build_model() -> tf_keras.Model:
    """One probability."""
    layers = tf_keras.layers
    tokens = tf_keras.Input((LENGTH,), name="tokens", dtype="int64")
    x = layers.Embedding(WORDS + 2, 16)(tokens)
    x = layers.Bidirectional(layers.LSTM(16))(x)
    return tf_keras.Model(tokens, layers.Dense(1, activation="sigmoid", name="liked")(x), name="text")


def run_fn(fn_args: Any) -> None:
    """Trains and saves the model."""
    tf_keras.utils.set_random_seed(0)
    model = build_model()
    model.compile(tf_keras.optimizers.Adam(1e-2), "binary_crossentropy", metrics=["binary_accuracy"])
    train_and_save(model, fn_args, LABEL, epochs=5)

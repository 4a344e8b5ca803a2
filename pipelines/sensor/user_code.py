"""preprocessing_fn and run_fn: windows through two Conv1D with BatchNormalization."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from tfx_edge.pipelines.sensor.data import AXES, LABEL, STEPS
from tfx_edge.pipelines.training import train_and_save


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Z-scores over all axes, `[64, 3]`."""
    return {"window": tf.reshape(tft.scale_to_z_score(inputs["window"]), [-1, STEPS, AXES]), LABEL: inputs[LABEL]}


def build_model() -> tf_keras.Model:
    """Three probabilities."""
    layers = tf_keras.layers
    window = tf_keras.Input((STEPS, AXES), name="window")
    x = window
    for filters in (16, 32):
        x = layers.Conv1D(filters, 5, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.8)(x))
    x = layers.GlobalAveragePooling1D()(x)
    return tf_keras.Model(window, layers.Dense(3, activation="softmax", name="activity")(x), name="sensor")


def run_fn(fn_args: Any) -> None:
    """Trains and saves the model."""
    tf_keras.utils.set_random_seed(0)
    model = build_model()
    model.compile(tf_keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    train_and_save(model, fn_args, LABEL, epochs=8)

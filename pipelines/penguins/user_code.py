"""preprocessing_fn and run_fn: scaled measurements into two Dense layers."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from tfx_edge.pipelines.penguins.data import LABEL
from tfx_edge.pipelines.training import train_and_save

FEATURES = ("culmen_length_mm", "culmen_depth_mm", "flipper_length_mm", "body_mass_g")


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Z-scores."""
    return {name: tft.scale_to_z_score(inputs[name]) for name in FEATURES} | {LABEL: inputs[LABEL]}


def run_fn(fn_args: Any) -> None:
    """Trains and saves the model."""
    tf_keras.utils.set_random_seed(0)
    inputs = [tf_keras.Input((1,), name=name) for name in FEATURES]
    x = tf_keras.layers.concatenate(inputs)
    for _ in range(2):
        x = tf_keras.layers.Dense(16, activation="relu")(x)
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(3, activation="softmax", name="probabilities")(x), name="penguins")
    model.compile(tf_keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    train_and_save(model, fn_args, LABEL, epochs=20, batch_size=16)

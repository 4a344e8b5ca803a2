"""preprocessing_fn and run_fn: JPEG bytes to pixels, and a MobileNet with a head, as in transfer learning."""

from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.pipelines.images.data import LABEL, SHAPES
from tfx_edge.pipelines.training import train_and_save

SIZE = 32


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Decodes and resizes to `[32, 32, 3]`, 0 to 255."""

    def pixels(jpeg: tf.Tensor) -> tf.Tensor:
        return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (SIZE, SIZE))

    images = tf.map_fn(pixels, tf.reshape(inputs["image"], [-1]), fn_output_signature=tf.TensorSpec((SIZE, SIZE, 3), tf.float32))
    return {"image": images, LABEL: inputs[LABEL]}


def build_model() -> tf_keras.Model:
    """Rescaling, MobileNet 0.25 (Howard et al. 2017) as a layer, a Dense head."""
    layers = tf_keras.layers
    backbone = tf_keras.applications.MobileNet(input_shape=(SIZE, SIZE, 3), alpha=0.25, weights=None, include_top=False, pooling="avg")
    for layer in backbone.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.9  # its default of 0.99 needs thousands of steps, and here are a few hundred
    image = tf_keras.Input((SIZE, SIZE, 3), name="image")
    x = layers.Rescaling(1 / 127.5, offset=-1)(image)
    x = layers.Dropout(0.2)(backbone(x))
    return tf_keras.Model(image, layers.Dense(len(SHAPES), activation="softmax", name="shapes")(x), name="shapes_in_images")


def run_fn(fn_args: Any) -> None:
    """Trains and saves the model."""
    tf_keras.utils.set_random_seed(0)
    model = build_model()
    model.compile(tf_keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    train_and_save(model, fn_args, LABEL, epochs=14)

"""What a team brings to a TFX pipeline: Transform's preprocessing_fn and the Trainer's run_fn. Nothing here knows of edge devices."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from tfx_edge.pipelines.saving import save_model

IMAGE = "image"
LABEL = "label"
BATCH_SIZE = 64


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Scales pixels to 0..1 and gives the image its two dimensions and one channel."""
    pixels = tft.scale_to_0_1(inputs[IMAGE])
    return {IMAGE: tf.reshape(pixels, [-1, 8, 8, 1]), LABEL: inputs[LABEL]}


def build_model() -> tf_keras.Model:
    """A small convnet, 144,000 parameters, `[n, 8, 8, 1]` to ten probabilities.

    Weight decay makes most weights small, which costs no accuracy and makes the quantized file compress far better.
    """
    layers = tf_keras.layers
    decay = tf_keras.regularizers.L2(1e-3)
    image = tf_keras.Input((8, 8, 1), name=IMAGE)
    x = layers.Conv2D(32, 3, padding="same", activation="relu", kernel_regularizer=decay, name="conv_1")(image)
    x = layers.Conv2D(32, 3, padding="same", activation="relu", kernel_regularizer=decay, name="conv_2")(x)
    x = layers.MaxPooling2D(name="pool")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(256, activation="relu", kernel_regularizer=decay, name="hidden")(x)
    x = layers.Dropout(0.3, name="dropout")(x)
    return tf_keras.Model(image, layers.Dense(10, activation="softmax", kernel_regularizer=decay, name="digit")(x), name="digits")


def run_fn(fn_args: Any) -> None:
    """Trains and saves the model; `custom_config` may set `epochs`."""
    tf_keras.utils.set_random_seed(0)
    spec = tft.TFTransformOutput(fn_args.transform_output).transformed_feature_spec()
    model = build_model()
    model.compile(tf_keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    model.fit(
        _dataset(fn_args.train_files, spec).shuffle(2_000, seed=0).batch(BATCH_SIZE),
        validation_data=_dataset(fn_args.eval_files, spec).batch(BATCH_SIZE),
        epochs=(fn_args.custom_config or {}).get("epochs", 20),
        verbose=2,
    )
    save_model(model, fn_args, label_key=LABEL)


def _dataset(patterns: list[str], spec: dict[str, Any]) -> tf.data.Dataset:
    """Pairs of features and label, one example each."""

    def parse(record: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        example = tf.io.parse_single_example(record, spec)
        return {IMAGE: example[IMAGE]}, example[LABEL]

    return tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(patterns)), "GZIP").map(parse).cache()

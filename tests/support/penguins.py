"""User code as TFX's penguin example has it: four scalar features, and the three forms in which such Trainers save."""

from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

FEATURES = ("culmen_length_mm", "culmen_depth_mm", "flipper_length_mm", "body_mass_g")
LABEL = "species"


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {name: tft.scale_to_z_score(inputs[name]) for name in FEATURES} | {LABEL: inputs[LABEL]}


def build_model() -> tf_keras.Model:
    return _dense(tf_keras)


def _dense(keras: Any) -> Any:
    keras.utils.set_random_seed(7)
    inputs = [keras.layers.Input(shape=(1,), name=name) for name in FEATURES]
    x = keras.layers.concatenate(inputs)
    for i in range(2):
        x = keras.layers.Dense(16, activation="relu", name=f"hidden_{i}")(x)
    model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax", name="probabilities")(x))
    model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    return model


def _dataset(fn_args: Any, transform: tft.TFTransformOutput) -> tf.data.Dataset:
    spec = transform.transformed_feature_spec()

    def parse(records: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        features = tf.io.parse_example(records, spec)
        label = features.pop(LABEL)
        return {k: tf.reshape(v, [-1, 1]) for k, v in features.items()}, label

    return tf.data.TFRecordDataset(tf.io.gfile.glob(fn_args.train_files), "GZIP").batch(32).map(parse)


def _train(model: Any, fn_args: Any) -> tft.TFTransformOutput:
    transform = tft.TFTransformOutput(fn_args.transform_output)
    dataset = _dataset(fn_args, transform)
    model.fit(dataset.map(lambda x, y: (tuple(x[name] for name in FEATURES), y)), epochs=20, verbose=0)
    return transform


def _serving_signature(model: Any, transform: tft.TFTransformOutput) -> Any:
    """The signature of TFX's example: parse, transform with an attached layer, predict."""
    model.tft_layer = transform.transform_features_layer()
    raw_spec = {k: v for k, v in transform.raw_feature_spec().items() if k != LABEL}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        features = model.tft_layer(tf.io.parse_example(examples, raw_spec))
        return {"outputs": model([tf.reshape(features[name], [-1, 1]) for name in FEATURES])}

    return serve


def run_fn_keras2(fn_args: Any) -> None:
    """Case 1: `model.save` with the transform layer attached."""
    model = build_model()
    transform = _train(model, fn_args)
    model.save(fn_args.serving_model_dir, save_format="tf", signatures={"serving_default": _serving_signature(model, transform)})


def run_fn_saved_model(fn_args: Any) -> None:
    """Case 2: `tf.saved_model.save`, which leaves Keras's metadata out."""
    model = build_model()
    transform = _train(model, fn_args)
    tf.saved_model.save(model, fn_args.serving_model_dir, signatures={"serving_default": _serving_signature(model, transform)})


def run_fn_keras3(fn_args: Any) -> None:
    """Case 3: a Keras 3 model, of which only the signatures are left."""
    import keras

    model = _dense(keras)
    transform = _train(model, fn_args)
    tf.saved_model.save(model, fn_args.serving_model_dir, signatures={"serving_default": _serving_signature(model, transform)})

"""A Keras SavedModel made again from its config: the same function as the one that Keras loads, or none."""

import numpy as np
import pytest
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.optimize.float_model.keras_config import model_from_config


def convnet():
    image = tf_keras.Input((8, 8, 1), name="image")
    x = layers.Conv2D(4, 3, kernel_regularizer=tf_keras.regularizers.L2(1e-3))(image)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x) * 2.0
    inner = tf_keras.Sequential([layers.InputLayer((6, 6, 4)), layers.DepthwiseConv2D(3), layers.GlobalAveragePooling2D()], name="inner")
    return tf_keras.Model(image, [layers.Dense(3, name="first")(inner(x)), layers.Dense(2, "softmax", name="second")(layers.Flatten()(x))])


def sequential():
    return tf_keras.Sequential([layers.InputLayer((5, 3), name="steps"), layers.Bidirectional(layers.LSTM(4)), layers.Dense(2)])


def several_inputs():
    words = tf_keras.Input((6,), dtype="int32", name="words")
    number = tf_keras.Input((1,), name="number")
    x = layers.GlobalMaxPooling1D()(layers.Embedding(20, 4)(words))
    return tf_keras.Model([words, number], layers.Dense(3)(layers.concatenate([x, layers.Rescaling(0.5)(number)])))


class TransformFeaturesLayer(tf_keras.layers.Layer):
    """Like Transform's layer in that Keras can't make it again."""

    def get_config(self):
        raise NotImplementedError

    def call(self, inputs):
        return inputs


def attached():
    model = several_inputs()
    model.tft_layer = TransformFeaturesLayer()
    return model


def saved(build, path):
    tf_keras.utils.set_random_seed(0)
    model = build()
    rng = np.random.default_rng(0)
    model.set_weights([np.abs(rng.normal(size=w.shape)) + 0.1 for w in model.get_weights()])  # moving variances are positive
    model.compile("adam", "mean_squared_error")
    model.save(path, save_format="tf")
    return str(path)


def batch(signature):
    rng = np.random.default_rng(1)
    shapes = {s.name: (s, (7, *s.shape[1:])) for s in signature.inputs}
    return {n: rng.integers(0, 20, size) if s.dtype == "int32" else rng.normal(size=size).astype("f4") for n, (s, size) in shapes.items()}


@pytest.mark.parametrize("build", [convnet, sequential, several_inputs, attached])
def test_what_is_made_from_the_config_is_the_function_that_keras_loads(build, tmp_path):
    path = saved(build, tmp_path / "model")
    assert model_from_config(path) is not None
    ours, keras = load_float_model(path, function_only=True), load_float_model(path)
    assert ours.signature == keras.signature
    features = batch(keras.signature)
    for name, expected in keras.predict(features).items():
        np.testing.assert_array_equal(ours.predict(features)[name], expected)


def normalized():
    norm = layers.Normalization(axis=-1)
    norm.adapt(np.random.default_rng(0).normal(5, 3, (50, 2)))
    return tf_keras.Sequential([layers.InputLayer((2,), name="x"), norm, layers.Dense(2)])


def layer_without_config():
    return tf_keras.Sequential([layers.InputLayer((2,), name="x"), TransformFeaturesLayer(), layers.Dense(2)])


def lambda_layer():
    return tf_keras.Sequential([layers.InputLayer((2,), name="x"), layers.Lambda(lambda x: x + 1), layers.Dense(2)])


@tf_keras.saving.register_keras_serializable("of_this_test")
class Doubled(layers.Dense):
    def call(self, inputs):
        return 2 * super().call(inputs)


def custom():
    return tf_keras.Sequential([layers.InputLayer((2,), name="x"), Doubled(2)])


class Subclassed(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        return self.dense(x)


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 2), np.float32))
    return model


def activated_by_the_user():
    def squared(x):
        return x * x

    return tf_keras.Sequential([layers.InputLayer((2,), name="x"), layers.Dense(2, activation=squared)])


@pytest.mark.parametrize("build", [normalized, layer_without_config, lambda_layer, custom, subclassed, activated_by_the_user])
def test_a_model_of_which_the_config_does_not_say_all_is_left_to_keras(build, tmp_path):
    model = build()
    model.save(tmp_path / "model", save_format="tf")
    assert model_from_config(str(tmp_path / "model")) is None

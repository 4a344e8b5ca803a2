"""Rebuilding a model from its layer calls: nothing lost, nothing shared, every single layer in reach."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tfx_edge.optimize.float_model.keras_model import load_keras_model
from tfx_edge.optimize.graph import is_flat, rebuild
from tfx_edge.optimize.model_copy import copy_model
from tfx_edge.schemas import EdgeError

layers = tf_keras.layers


def tangled(seed: int = 3) -> tf_keras.Model:
    """Two inputs by name, operators with constants, slices and tensors anywhere, a nested frozen model called twice, equal names."""
    tf_keras.utils.set_random_seed(seed)
    image = tf_keras.Input((6, 6, 3))
    x = layers.Conv2D(4, 3, name="conv")(image)
    x = layers.BatchNormalization(name="norm")(x)
    base = tf_keras.Model(image, layers.Dropout(0.5)(layers.ReLU(6.0)(x)), name="base")
    base.trainable = False
    left, right = tf_keras.Input((6, 6, 3), name="left"), tf_keras.Input((6, 6, 3), name="right")
    both = tf.concat([left / 127.5 - 1.0, right * 2.0], axis=1)[:, 3:-3]
    features = tf.math.add(base(left, training=False), y=base(layers.Conv2D(3, 1, name="conv")(both)))
    pooled = layers.GlobalAveragePooling2D(name="pooled")(features)
    head = tf_keras.Sequential([layers.Dense(5, "relu"), layers.Dense(2, name="conv")], name="head")
    model = tf_keras.Model({"left": left, "right": right}, [head(pooled), pooled, head(pooled * 2.0)], name="tangled")
    for weight in model.weights:  # moving averages away from their first values too
        weight.assign(tf.random.uniform(weight.shape, 0.1, 0.6))
    return model


def images(count: int = 3) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {name: generator.uniform(0, 255, (count, 6, 6, 3)).astype(np.float32) for name in ("left", "right")}


def assert_equal(model: tf_keras.Model, other: tf_keras.Model, training: bool = False, tolerance: float = 0.0) -> None:
    for want, have in zip(model(images(), training=training), other(images(), training=training), strict=True):
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


def test_a_rebuilt_model_is_flat_and_equal_with_the_same_inputs_and_outputs_and_unlike_names() -> None:
    model = tangled()
    flat = rebuild(model)
    assert is_flat(flat) and not is_flat(model)
    assert_equal(model, flat)
    assert (flat.input_names, flat.output_names, flat.name) == (model.input_names, model.output_names, model.name)
    names = [layer.name for layer in flat.layers]
    assert len(set(names)) == len(names) and {"conv", "base_conv", "head_conv", "norm"} <= set(names)
    assert [layer.name for layer in rebuild(model).layers] == names, "the same model must give the same names"


def test_a_frozen_base_in_inference_mode_stays_so_in_training() -> None:
    model = tangled()
    flat = rebuild(model)
    assert [w.shape for w in flat.trainable_weights] == [w.shape for w in model.trainable_weights]
    before = flat.get_layer("norm").get_weights()
    left = {**images(), "right": np.zeros_like(images()["right"])}
    flat.get_layer("norm").trainable = True  # so that only the training=False of one of the two calls holds it back
    calls = [node.call_kwargs.get("training") for node in flat.get_layer("norm").inbound_nodes]
    assert calls == [False, None]
    flat.get_layer("norm").trainable = False
    flat(left, training=True)
    for a, b in zip(before, flat.get_layer("norm").get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_is_shared_with_the_original_and_layers_called_twice_stay_one() -> None:
    model = tangled()
    want = [t.numpy() for t in model(images())]
    flat = rebuild(model)
    assert flat.count_params() == model.count_params()
    assert not {id(layer) for layer in flat.layers} & {id(layer) for layer in model.layers}
    for weight in flat.weights:
        weight.assign(tf.zeros_like(weight))
    for a, b in zip(want, model(images()), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_replacement_sees_each_call_of_each_single_layer_and_takes_its_place() -> None:
    model = tangled()
    seen: list[str] = []
    twice = {}

    def replace(layer: Any, inputs: Any, kwargs: dict[str, Any]) -> Any:
        seen.append(layer.name)
        if layer.name != "head_conv":
            return None
        if "new" not in twice:
            twice["new"] = layers.Dense(2, name=layer.name, kernel_initializer=tf.constant_initializer(2 * layer.get_weights()[0]))
        return twice["new"](inputs)

    other = rebuild(model, replace)
    assert seen.count("base_conv") == seen.count("head_conv") == 2 and seen.count("conv") == 1
    assert other.output_names == model.output_names
    bias = model.get_layer("head").layers[-1].get_weights()[1]
    for i in (0, 2):
        np.testing.assert_allclose(other(images())[i], 2 * (model(images())[i] - bias), rtol=1e-5, atol=1e-5)


def test_a_rebuilt_model_can_be_copied_saved_loaded_and_rebuilt(tmp_path) -> None:
    model = tangled()
    flat = rebuild(model)
    assert_equal(flat, copy_model(flat))
    flat.save(tmp_path, save_format="tf")
    loaded = load_keras_model(str(tmp_path))
    assert_equal(flat, loaded)
    again = rebuild(loaded)
    assert [layer.name for layer in again.layers] == [layer.name for layer in flat.layers]
    assert_equal(flat, again)


@pytest.mark.parametrize(
    "operators",
    [
        lambda x: tf.reshape(x, [-1, 2, 2])[:, 0],
        lambda x: tf.cast(x > 0.5, tf.float32) * np.array([1.0, 2.0, 3.0, 4.0], np.float32),
        lambda x: tf.where(x > 0.0, x, tf.zeros_like(x)) - tf.reduce_mean(x, axis=1, keepdims=True),
        lambda x: tf.matmul(x[:, tf.newaxis], x[..., tf.newaxis])[:, :, 0] + tf.cast(tf.shape(x)[0], tf.float32),
        lambda x: tf.split(x, 2, axis=1)[1] @ tf.constant([[1.0], [2.0]]),
        lambda x: 1.0 - tf.nn.relu(x),
    ],
)
def test_operators_between_layers_are_kept_with_all_their_arguments(operators: Any, tmp_path) -> None:
    inputs = tf_keras.Input((4,), name="x")
    model = tf_keras.Model(inputs, operators(layers.Dense(4)(inputs)))
    flat = rebuild(model)
    assert is_flat(flat)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    np.testing.assert_array_equal(flat(x), model(x))
    np.testing.assert_array_equal(tf_keras.Model.from_config(flat.get_config()).count_params(), model.count_params())


def test_masks_and_state_beside_weights_are_carried_over() -> None:
    tokens = tf_keras.Input((5,), name="tokens", dtype="int32")
    scale = layers.Normalization(axis=None)
    scale.adapt([1.0, 5.0, 9.0])
    x = layers.LSTM(3)(layers.Embedding(9, 4, mask_zero=True)(tokens))
    model = tf_keras.Model(tokens, scale(x))
    flat = rebuild(model, lambda *_: None)
    ids = np.array([[3, 4, 0, 0, 0], [1, 2, 3, 4, 5]])
    np.testing.assert_array_equal(flat(ids), model(ids))


def test_what_cannot_be_rebuilt_is_named() -> None:
    class Odd(layers.Layer):
        def __init__(self, needed: int) -> None:
            super().__init__(name="odd")

        def call(self, inputs: Any) -> Any:
            return inputs

    inputs = tf_keras.Input((2,))
    with pytest.raises(EdgeError, match="layer 'odd' \\(Odd\\) can't be made again .*get_config"):
        rebuild(tf_keras.Model(inputs, Odd(1)(inputs)))
    model = tf_keras.Model(inputs, layers.Dense(1)(inputs))
    model.add_loss(tf.reduce_mean(model.output))
    with pytest.raises(EdgeError, match="adds a loss or metric on a tensor inside"):
        rebuild(model)

"""Models trained elsewhere: `.h5` and `.keras` by Keras 2 come in as they are, by Keras 3 converted."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tf_keras

from tfx_edge.optimize.float_model import load_float_model, to_keras2
from tfx_edge.optimize.model_copy import copy_model
from tfx_edge.optimize.preparation import prepare
from tfx_edge.schemas import EdgeError


def small(package: Any) -> Any:
    inputs = package.Input((4,), name="x")
    x = package.layers.Dense(5, "relu", name="hidden")(inputs)
    model = package.Model(inputs, package.layers.Dense(3, "softmax", name="scores")(x), name="small")
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def large(seed: int = 1) -> Any:
    """Of Keras 3: what a vision and a text model are made of, a nested model in inference mode, outputs and inputs by name."""
    keras.utils.set_random_seed(seed)
    layers = keras.layers
    inner = keras.Input((8, 8, 3))
    x = layers.BatchNormalization(name="norm")(layers.Conv2D(4, 3, use_bias=False, kernel_regularizer="l2", name="conv")(inner))
    base = keras.Model(inner, layers.SeparableConv2D(5, 3)(layers.LeakyReLU(negative_slope=0.1)(x)), name="base")
    image, tokens = keras.Input((8, 8, 3), name="image"), keras.Input((6,), name="tokens", dtype="int32")
    x = layers.Rescaling(1 / 255)(layers.RandomFlip()(image))
    x = layers.GlobalAveragePooling2D()(base(x, training=False))
    masked = layers.Bidirectional(layers.LSTM(4))(layers.Embedding(30, 8, mask_zero=True)(tokens))
    words = layers.Embedding(30, 8)(tokens)
    attended = layers.GRU(3)(layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(words, words)))
    both = layers.Dropout(0.2)(layers.Concatenate()([x, masked, attended]))
    head = keras.Sequential([layers.Dense(8, "relu"), layers.Dense(3, "softmax")], name="head")
    model = keras.Model({"image": image, "tokens": tokens}, [head(both), layers.Dense(1, name="side")(both)], name="large")
    model.compile("adam", ["sparse_categorical_crossentropy", keras.losses.BinaryCrossentropy(from_logits=True)])
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(generator.uniform(0.05, 0.4, weight.shape))
    return model


def features(count: int = 5) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(4)
    return {
        "image": generator.uniform(0, 255, (count, 8, 8, 3)).astype(np.float32),
        "tokens": generator.integers(0, 30, (count, 6)).astype(np.int32),
    }


@pytest.mark.parametrize("package", [tf_keras, keras], ids=["keras2", "keras3"])
@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_a_model_file_of_either_keras_predicts_the_same(package: Any, suffix: str, tmp_path: Path) -> None:
    model = small(package)
    path = str(tmp_path / f"model.{suffix}")
    model.save(path)
    loaded = load_float_model(path)
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    np.testing.assert_allclose(loaded.predict({"x": x})["scores"], model.predict(x, verbose=0), rtol=1e-5, atol=1e-6)
    assert loaded.keras_model is not None and isinstance(loaded.keras_model, tf_keras.Model)
    assert "sparse_categorical_crossentropy" in str(loaded.keras_model.get_compile_config()["loss"])
    copy_model(loaded.keras_model)


def test_a_keras_3_model_of_many_layers_is_converted_with_its_weights_and_losses(tmp_path: Path) -> None:
    model = large()
    path = str(tmp_path / "large.keras")
    model.save(path)
    loaded = load_float_model(path)
    assert loaded.signature.input_names == ("image", "tokens") and loaded.signature.output_names == ("head", "side")
    want = model.predict(features(), verbose=0)
    for have, expected in zip(loaded.predict(features()).values(), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-5)
    converted = loaded.keras_model
    assert converted is not None and converted.loss[1].get_config()["from_logits"]
    assert converted.get_layer("conv").kernel_regularizer is not None
    assert {w.name.split("/")[0] for w in converted.weights} >= {"conv", "norm", "side"}
    assert {r.type for r in prepare(converted, features())[1].rewrites} == {"Rescaling", "Bidirectional", "GRU"}


def test_a_sequential_keras_3_model_is_converted() -> None:
    model = keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(3, name="a"), keras.layers.Dense(2, name="b")], name="s")
    converted = to_keras2(model)
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(converted(x), model(x), rtol=1e-6)
    assert (converted.input_names, converted.output_names, converted.name) == (["x"], ["b"], "s")


def test_a_layer_that_keras_2_does_not_have_is_named(tmp_path: Path) -> None:
    inputs = keras.Input((4,), name="x")
    keras.Model(inputs, keras.ops.sin(inputs)).save(tmp_path / "sine.keras")
    with pytest.raises(EdgeError, match="layer 'sin' \\(Sin\\) has no twin in Keras 2; build the model with the layers of tf_keras"):
        load_float_model(str(tmp_path / "sine.keras"))

    class Own(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(EdgeError, match="layer 'own' \\(Own\\) has no twin|layer 'own' \\(Own of .*\\) has no twin"):
        to_keras2(keras.Model(inputs, Own(name="own")(inputs)))


def test_a_twin_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(tf_keras.layers.LeakyReLU):
        def call(self, inputs: Any) -> Any:
            return super().call(inputs) + 1.0

    monkeypatch.setattr(tf_keras.layers, "LeakyReLU", Other)
    inputs = keras.Input((4,), name="x")
    with pytest.raises(EdgeError, match="in Keras 2 output 'leaky' differs by 1 from Keras 3's"):
        to_keras2(keras.Model(inputs, keras.layers.LeakyReLU(name="leaky")(inputs)))


@pytest.mark.parametrize(("name", "content"), [("a.keras", b"nonsense"), ("a.h5", b"nonsense")])
def test_a_damaged_or_missing_file_is_named_in_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match=f"no model file at {tmp_path}/{name}"):
        load_float_model(str(tmp_path / name))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EdgeError, match="can't be read: .*; save it again") as error:
        load_float_model(str(tmp_path / name))
    assert len(str(error.value).splitlines()) == 1


def test_weights_alone_and_subclassed_models_are_refused(tmp_path: Path) -> None:
    small(tf_keras).save_weights(tmp_path / "weights.h5")
    with pytest.raises(EdgeError, match="holds weights without a model; save the whole model"):
        load_float_model(str(tmp_path / "weights.h5"))
    with pytest.raises(EdgeError, match="neither functional nor Sequential"):
        to_keras2(type("Own", (keras.Model,), {})(name="own"))

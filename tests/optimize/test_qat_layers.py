"""Quantization-aware training: which layers are quantized, and why the others aren't."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from qat_models import FINE_TUNING, dataset, flatbuffer, image_model, images, kernels, qat
from tf_keras import layers

from tfx_edge.litert import inspect
from tfx_edge.litert.plan import make_trained_plan
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.optimize.qat.selection import choose_layers
from tfx_edge.optimize.qat.splitting import split_separable
from tfx_edge.schemas import EdgeError, QatConfig, QuantizationConfig


@pytest.fixture(scope="module")
def model():
    return image_model()


class Doubled(layers.Layer):
    """A layer of a user's."""

    def call(self, inputs):
        return inputs * 2.0


def chosen(build):
    inputs = layers.Input((6, 4), name="a")
    model = tf_keras.Model(inputs, build(inputs))
    return model, {c.layer: c.reason for c in choose_layers(model, qat())}


@pytest.mark.parametrize(
    "layer",
    [
        layers.Conv1D(8, 3, name="odd"),
        layers.LSTM(5, name="odd"),
        layers.LayerNormalization(name="odd"),
        layers.Normalization(mean=1.0, variance=4.0, name="odd"),
        layers.Rescaling(2.0, name="odd"),
        Doubled(name="odd"),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_without_an_8_bit_form_stay_float_with_the_reason(layer):
    _, reasons = chosen(lambda x: layers.Dense(3, name="head")(layers.Flatten(name="flat")(layer(x))))
    assert reasons == {"odd": f"tfmot has no 8-bit form of the layer type {type(layer).__name__}", "flat": "", "head": ""}


def test_what_follows_a_float_layer_is_quantized_as_its_output_gets_a_range(tmp_path):
    model, _ = chosen(lambda x: layers.Dense(3)(Doubled()(layers.Flatten()(layers.Normalization(mean=1.0, variance=4.0)(x)))))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    values = np.random.default_rng(0).normal(size=(32, 6, 4)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"a": values}, np.arange(32) % 3))
    quantized, _ = train_quantized(model, data, QatConfig(fine_tuning=FINE_TUNING.model_copy(update={"epochs": 1})))
    assert np.abs(quantized(values).numpy() - model(values).numpy()).max() < 0.1 * np.ptp(model(values).numpy())
    [kernel] = kernels(flatbuffer(tmp_path, quantized, "int8"))
    assert kernel.dtype == np.int8


def test_a_layer_behind_one_whose_output_gets_no_range_stays_float():
    inputs = layers.Input((6, 4), name="a")
    attended = layers.MultiHeadAttention(2, 4, name="odd")(inputs, inputs)
    x = layers.Flatten(name="flat")(attended)
    reasons = {c.layer: c.reason for c in choose_layers(tf_keras.Model(inputs, layers.Dense(3, name="head")(x)), qat())}
    assert reasons["flat"] == "its input comes from the float layer 'odd', whose output tfmot can't give a range"
    assert reasons["head"] == ""  # the output of flat gets a range


def test_a_dense_layer_on_more_than_vectors_stays_float():
    _, reasons = chosen(lambda x: layers.Dense(3, name="head")(layers.Flatten(name="flat")(layers.Dense(4, name="steps")(x))))
    assert reasons == {"steps": "its input has 3 dimensions, and the converter makes a float product of that", "flat": "", "head": ""}


@pytest.mark.parametrize(
    ("names", "text"), [(("hiden",), "pattern 'hiden' matches no layer"), (("flat", "relu"), "no layer with weights .* can be quantized")]
)
def test_patterns_that_select_nothing_are_refused(model, names, text):
    with pytest.raises(EdgeError, match=text) as error:
        train_quantized(model, dataset(), qat(layers=names))
    assert "\n" not in str(error.value)


FLOAT, INT8 = 0, 9


@pytest.mark.parametrize(
    ("names", "types"),
    [
        (("hidden", "head"), [FLOAT, FLOAT, INT8, INT8]),
        (("conv", "norm", "relu", "wide"), [INT8, INT8, FLOAT, FLOAT]),  # not by dynamic range either
        (("conv", "norm", "relu", "wide", "flat", "head"), [INT8] * 4),  # the converter quantizes hidden unasked
    ],
    ids=["end", "start", "around"],
)
def test_patterns_select_layers(model, tmp_path, names, types):
    quantized, report = train_quantized(model, dataset().take(64), qat(layers=names))
    assert [layer.layer for layer in report.layers if layer.emulated] == list(names)
    assert model.get_layer("hidden").kernel.shape.num_elements() > 1024  # what the converter holds to be large
    built = flatbuffer(tmp_path, quantized, "float32")
    assert [kernel.dtype for kernel in kernels(built)] == [{FLOAT: np.float32, INT8: np.int8}[kind] for kind in types]
    plan = make_trained_plan(built, built, QuantizationConfig(qat=qat(layers=names)))  # the float model only gives the digest
    weighted = [op.op for op in plan.float_ops if op.op in ("CONV_2D", "FULLY_CONNECTED")]
    assert len(weighted) == types.count(FLOAT) and all("qat.json" in op.reason for op in plan.float_ops)


def test_a_separable_convolution_is_quantized_as_two_and_keeps_its_clusters(tmp_path):
    tf_keras.backend.clear_session()  # so that the next Conv2D is called conv2d, as in a process that loaded the model
    rng = np.random.default_rng(5)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2D(4, 3, name="conv2d")(inputs)
    x = layers.SeparableConv2D(12, 3, strides=2, padding="same", depth_multiplier=2, use_bias=False, name="sep")(x)
    x = layers.ReLU(name="relu")(layers.BatchNormalization(name="norm")(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(layers.Flatten(name="flat")(x)))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.set_weights(
        [rng.uniform(0.2, 1, w.shape) if w.ndim == 1 else rng.choice(rng.normal(size=6), w.shape) for w in model.get_weights()]
    )
    features = images()[0]["image"]
    np.testing.assert_allclose(split_separable(model, ["sep"])(features), model(features), rtol=1e-4, atol=1e-4)
    quantized, report = train_quantized(model, dataset(), qat())
    told = {layer.layer: layer for layer in report.layers}
    assert list(told) == ["conv2d", "sep", "norm", "relu", "flat", "head"] and all(layer.emulated for layer in report.layers)
    assert told["sep"].values_before == told["sep"].values == 6 and told["sep"].kept == ("clusters",)
    built = flatbuffer(tmp_path, quantized, "int8")
    assert set(inspect.operators(built)) == {"CONV_2D", "DEPTHWISE_CONV_2D", "RESHAPE", "FULLY_CONNECTED"}
    assert [np.unique(kernel).size <= 6 for kernel in kernels(built)] == [True] * 3
    emulated = quantized.predict(features, verbose=0)
    assert np.abs(Runner(built)({"image": features})["head"] - emulated).max() < 0.01 * np.ptp(emulated)


def test_a_transposed_convolution_stays_float_as_keras_cannot_save_what_tfmot_makes_of_it(tmp_path):
    tf_keras.utils.set_random_seed(2)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2DTranspose(4, 3, name="up")(layers.Conv2D(4, 3, name="conv")(inputs))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(layers.Flatten(name="flat")(x)))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    quantized, report = train_quantized(model, dataset().take(64), qat())
    reasons = {layer.layer: layer.reason for layer in report.layers}
    assert reasons == {"conv": "", "up": "Keras can't save tfmot's 8-bit form of a Conv2DTranspose", "flat": "", "head": ""}
    assert "TRANSPOSE_CONV" in inspect.operators(flatbuffer(tmp_path, quantized, "int8"))


class Scaled(layers.Layer):
    """A layer of a user's with an argument and without get_config."""

    def __init__(self, factor=2.0, **rest):
        super().__init__(**rest)
        self.factor = factor

    def call(self, inputs):
        return inputs * self.factor


def test_a_layer_without_get_config_is_named_with_its_cure():
    inputs = layers.Input((6,), name="a")
    model = tf_keras.Model(inputs, layers.Dense(3)(Scaled(3.0, name="scaled")(layers.Dense(4)(inputs))))
    data = tf.data.Dataset.from_tensor_slices(({"a": np.ones((8, 6), np.float32)}, np.zeros(8, np.int64)))
    with pytest.raises(EdgeError, match=r"layer 'scaled' \(Scaled\) has no name.*get_config") as caught:
        train_quantized(model, data, qat())
    assert len(str(caught.value).splitlines()) == 1

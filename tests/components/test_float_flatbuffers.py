"""From a float model to its flatbuffer: names, batches, several signatures."""

import keyword
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from tfx_edge.components.float_flatbuffers import convert_model, convert_models
from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets.rules import judge
from tfx_edge.optimize.float_model import FloatModel
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.schemas import (
    AccuracyTarget,
    ConfigError,
    ConversionConfig,
    EdgeError,
    FineTuningConfig,
    QatConfig,
    QuantizationConfig,
    Signature,
    Target,
    TensorSpec,
    Threshold,
)

ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01)
ODD_NAMES = ["a b", "x.y", "größe", "class", "q/β", "petal-length", "A", "a", "x:0", "output_0", "_", "7"]


def test_inputs_and_outputs_keep_names_that_are_neither_pythons_nor_tensorflows() -> None:
    assert any(keyword.iskeyword(name) for name in ODD_NAMES)
    shape: Any = {"shape": (None, 2), "dtype": "float32"}

    def function(**features: Any) -> dict[str, Any]:
        halves = {f"{name} half": features[name] * (0.5 + i) for i, name in enumerate(ODD_NAMES)}
        return {**halves, "same": halves["A half"], "through": features["q/β"]}

    outputs = [*(f"{name} half" for name in ODD_NAMES), "same", "through"]
    signature = Signature(
        inputs=tuple(TensorSpec(name=name, **shape) for name in ODD_NAMES),
        outputs=tuple(TensorSpec(name=name, **shape) for name in outputs),
    )
    model = FloatModel(signature, function, ())
    features = {name: np.full((3, 2), i, np.float32) for i, name in enumerate(ODD_NAMES)}
    runner = Runner(convert_model(model, "the model"))
    assert {spec.name for spec in runner.signature.inputs} == set(ODD_NAMES)
    for got in (runner(features), model.predict(features)):
        assert set(got) == set(outputs)
        for name, expected in function(**features).items():
            np.testing.assert_array_equal(got[name], expected)


def test_a_keras_model_with_such_names_predicts_and_converts() -> None:
    inputs = [keras.Input((2,), name=name) for name in ("petal-length", "petal.width")]
    model = from_keras_model(keras.Model(inputs, keras.layers.Dense(1, name="class-1")(keras.layers.Concatenate()(inputs))))
    features = {name: np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32) for name in model.signature.input_names}
    got = Runner(convert_model(model, "the model"))(features)
    np.testing.assert_allclose(got["class-1"], model.predict(features)["class-1"], rtol=1e-5, atol=1e-6)


def test_a_recurrent_model_of_any_batch_is_fixed_to_one_example_and_to_more_where_that_is_asked() -> None:
    tokens = keras.Input((6,), dtype="int32", name="tokens")
    x = keras.layers.Bidirectional(keras.layers.LSTM(4))(keras.layers.Embedding(10, 3)(tokens))
    model = from_keras_model(keras.Model(tokens, keras.layers.Dense(1, name="y")(x)))
    features = {"tokens": np.random.default_rng(0).integers(0, 10, (5, 6)).astype(np.int32)}
    for asked, batch_size in ((None, 1), (2, 2)):
        runner = Runner(flatbuffer := convert_model(model, "the model", ConversionConfig(batch_size=asked)))
        assert runner.batch_size == batch_size
        assert inspect.operators(flatbuffer)["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 2
        np.testing.assert_allclose(runner(features)["y"], model.predict(features)["y"], rtol=1e-4, atol=1e-5)


def test_each_signature_stands_under_its_name() -> None:
    scale = tf.Variable(3.0)
    signature = Signature(
        inputs=(TensorSpec(name="x-1", shape=(None, 2), dtype="float32"),),
        outputs=(TensorSpec(name="y", shape=(None, 2), dtype="float32"),),
    )
    models = {
        "double": FloatModel(signature, lambda **f: {"y": f["x-1"] * 2.0}, ()),
        "scale": FloatModel(signature, lambda **f: {"y": f["x-1"] * scale}, (scale,)),
    }
    flatbuffer = convert_models(models, "the models")
    x = {"x-1": np.ones((3, 2), np.float32)}
    assert {name: Runner(flatbuffer, signature=name)(x)["y"].max() for name in models} == {"double": 2, "scale": 3}


@pytest.mark.parametrize("settings", [{"scheme": "int8"}, {"scheme": "int16x8"}])
def test_several_signatures_with_a_scheme_that_takes_ranges_of_one_graph_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="2 signatures with scheme .*export each on its own, or choose 'dynamic_range'"):
        QuantizationConfig(conversion=ConversionConfig(signatures=("a", "b")), **settings)
    QuantizationConfig(conversion=ConversionConfig(signatures=("a", "b")), scheme="dynamic_range")


def test_a_signature_named_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="signatures has 'a' twice; name it once"):
        ConversionConfig(signatures=("a", "a"))


def dense() -> FloatModel:
    x = keras.Input((4,), name="x")
    return from_keras_model(keras.Model(x, keras.layers.Dense(2, name="y")(x)))


def test_tensorflows_operators_being_allowed_changes_no_model_that_goes_without() -> None:
    assert convert_model(model := dense(), "the model", ConversionConfig(select_tf_ops=True)) == convert_model(model, "the model")


def test_other_signatures_than_those_that_there_are_are_refused() -> None:
    with pytest.raises(EdgeError, match="the model: conversion.signatures names embed, this model is converted as serving_default alone"):
        convert_model(dense(), "the model", ConversionConfig(signatures=("embed",)))


@pytest.mark.parametrize("last_resort", [True, False])
def test_a_signature_with_training_of_the_keras_model_is_refused(last_resort: bool) -> None:
    qat = QatConfig(fine_tuning=FineTuningConfig(label_key="y"))
    settings: Any = (
        {"accuracy_target": AccuracyTarget(threshold=ACCURACY, label_key="y", split="eval", qat=qat)} if last_resort else {"qat": qat}
    )
    with pytest.raises(ConfigError, match="signatures with qat, which trains the Keras model"):
        QuantizationConfig(conversion=ConversionConfig(signatures=("embed",)), **settings)


def test_a_fixed_batch_is_what_makes_every_shape_known_to_an_edge_tpu() -> None:
    x = keras.Input((8, 8, 3), name="x")
    pixels = keras.layers.UpSampling2D(2)(keras.layers.Conv2D(4, 3, padding="same")(x))
    model = from_keras_model(keras.Model(x, keras.layers.Dense(2, name="y")(keras.layers.Flatten()(pixels))))
    profile = Target(profile="edgetpu").resolve()
    for batch_size, dynamic in ((None, True), (1, False)):
        reasons = judge(convert_model(model, "the model", ConversionConfig(batch_size=batch_size)), profile).reasons
        assert any("fixed batch" in reason for reason in reasons) == dynamic

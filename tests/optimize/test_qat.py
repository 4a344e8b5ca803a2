"""Quantization-aware training: what it keeps, asserted on the flatbuffer that comes of it."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from qat_models import FINE_TUNING, dataset, flatbuffer, image_model, images, kernels, qat
from tf_keras import layers

from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.optimize.qat.folding import fold_norms
from tfx_edge.optimize.qat.preserve import kept
from tfx_edge.schemas import ClusteringConfig, QatConfig
from tfx_edge.schemas.training import EarlyStopping


@pytest.fixture(scope="module")
def model():
    return image_model()


@pytest.fixture(scope="module")
def clustered(model):
    return cluster(model, dataset(), ClusteringConfig(clusters={"*": 8}, fine_tuning=FINE_TUNING))[0]


@pytest.fixture(scope="module")
def trained(model):
    return train_quantized(model, dataset(), qat())


@pytest.fixture(scope="module")
def exported(tmp_path_factory, trained):
    return flatbuffer(tmp_path_factory.mktemp("trained"), trained[0], "int8")


def accuracy(model_bytes, output):
    features, labels = images()
    return float((Runner(model_bytes)(features)[output].argmax(-1) == labels).mean())


def test_sparsity_is_kept_to_the_last_weight_of_the_flatbuffer(exported, model, trained):
    _, report = trained
    assert report.technique == "PQAT"
    integers = kernels(exported)
    for name, kernel in zip(("conv", "wide", "hidden", "head"), integers, strict=True):
        was_zero = np.moveaxis(model.get_layer(name).get_weights()[0] == 0, -1, 0)
        assert was_zero.mean() > 0.55 and not kernel[was_zero.reshape(kernel.shape)].any(), name
        assert np.abs(kernel).max() == 127, name
    told = {layer.layer: layer for layer in report.layers}
    assert told["wide"].kept == ("sparsity",) and told["wide"].zeros == told["wide"].zeros_before > 0


def test_the_ranges_of_weights_are_those_of_the_weights_after_the_last_step(trained):
    """tfmot leaves those of the step before, by which the largest weights would be cut."""
    found = 0
    for layer in trained[0].layers:
        for kernel, _, ranges in getattr(layer, "_weight_vars", ()):
            largest = np.abs(kernel.numpy()).reshape(-1, kernel.shape[-1]).max(axis=0)
            have = np.maximum(-ranges["min_var"].numpy(), ranges["max_var"].numpy())
            np.testing.assert_allclose(have, largest if have.ndim else largest.max(), rtol=1e-6)
            found += 1
    assert found == 4


def test_zeros_and_clusters_are_kept_to_the_last_weight_of_the_flatbuffer(tmp_path, clustered):
    quantized, report = train_quantized(clustered, dataset(), qat())
    assert report.technique == "PCQAT"
    built = flatbuffer(tmp_path, quantized, "int8")
    conv, *others = kernels(built)
    for name, kernel in zip(("wide", "hidden", "head"), others, strict=True):
        assert 3 <= np.unique(kernel).size <= 8, name
    assert all(np.unique(channel).size <= 8 for channel in conv)
    negative = quantized.get_layer("norm").layer.gamma.numpy() < 0
    assert negative.any() and np.unique(conv[~negative]).size <= 8  # a negative scale negates its channel when it is folded
    assert {layer.layer for layer in report.layers if layer.by_channel and layer.kept} == {"conv"}
    for name, kernel in zip(("conv", "wide", "hidden", "head"), (conv, *others), strict=True):
        was_zero = np.moveaxis(clustered.get_layer(name).get_weights()[0] == 0, -1, 0)
        assert not kernel[was_zero.reshape(kernel.shape)].any(), name
    assert accuracy(built, "head") > 0.9


def test_the_flatbuffer_computes_in_integers_alone_and_as_the_model_says(tmp_path, exported, trained):
    (quantized, _), built = trained, exported
    assert set(inspect.operators(built)) == {"CONV_2D", "RESHAPE", "FULLY_CONNECTED"}  # the norm is folded
    assert {t.dtype for t in (*Runner(built).signature.inputs, *Runner(built).signature.outputs)} == {"int8"}
    assert quantized.output_names == ["head"]
    emulated = quantized.predict(images()[0], verbose=0)
    got = Runner(built)(images()[0])["head"]
    assert np.abs(got - emulated).max() < 0.01 * np.ptp(emulated)  # two integers
    assert accuracy(built, "head") > 0.9
    assert {"QUANTIZE", "DEQUANTIZE"} <= set(inspect.operators(flatbuffer(tmp_path, quantized, "float32")))


def test_the_input_stays_as_it_is_and_the_norm_is_frozen(model, trained):
    quantized, report = trained
    assert [layer.emulated for layer in report.layers] == [True] * 7
    np.testing.assert_array_equal(quantized.get_layer("norm").layer.moving_mean, model.get_layer("norm").moving_mean)
    assert quantized.loss is not None


HELD = {
    "dense": np.linspace(-1, 1, 100),
    "sparse": np.where(np.arange(100) % 2, np.linspace(-1, 1, 100), 0),
    "shared": np.resize([-1.0, 0.5, 1], 100),
    "sparse and shared": np.resize([-1.0, 0, 1], 100),
}


@pytest.mark.parametrize(
    ("preserve", "expected"),
    [
        ("auto", [(), ("sparsity",), ("clusters",), ("sparsity", "clusters")]),
        ("nothing", [()] * 4),
        ("sparsity", [("sparsity",)] * 4),
        ("clusters", [("clusters",)] * 4),
        ("sparsity_and_clusters", [("sparsity", "clusters")] * 4),
    ],
)
def test_what_to_keep_can_be_named_or_is_seen(preserve, expected):
    assert [kept(kernel, qat(preserve=preserve)) for kernel in HELD.values()] == expected


def test_with_clusters_alone_named_zeros_move(clustered):
    _, report = train_quantized(clustered, dataset().take(64), qat(preserve="clusters"))
    hidden = next(layer for layer in report.layers if layer.layer == "hidden")
    assert (report.technique, hidden.kept) == ("CQAT", ("clusters",))
    assert hidden.values <= 8 and hidden.zeros < hidden.zeros_before


def test_a_norm_behind_a_dense_layer_is_folded_before_training(tmp_path):
    tf_keras.utils.set_random_seed(1)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Dense(16, use_bias=False, name="hidden")(layers.Flatten(name="flat")(inputs))
    x = layers.ReLU(name="relu")(layers.BatchNormalization(momentum=0.5, name="norm")(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(x))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(*images(), epochs=3, verbose=0)
    features = images()[0]["image"]
    np.testing.assert_allclose(fold_norms(model, ["norm"])(features), model(features), rtol=1e-3, atol=1e-3)
    quantized, _ = train_quantized(model, dataset(), qat())
    built = flatbuffer(tmp_path, quantized, "int8")
    assert "MUL" not in inspect.operators(built) and all(kernel.dtype == np.int8 for kernel in kernels(built))
    assert len(kernels(built)) == 2


def test_early_stopping_by_other_examples_keeps_the_best_epoch_and_the_zeros(model):
    features, labels = images()
    against = tf.data.Dataset.from_tensor_slices((features, 1 - labels))  # the better the training, the worse these
    stopping = FINE_TUNING.model_copy(update={"epochs": 9, "early_stopping": EarlyStopping(patience=1)})
    stopped, report = train_quantized(model, dataset(), QatConfig(fine_tuning=stopping), validation=against)
    once, _ = train_quantized(model, dataset(), QatConfig(fine_tuning=FINE_TUNING.model_copy(update={"epochs": 1})))
    assert all(np.array_equal(a, b) for a, b in zip(stopped.get_weights(), once.get_weights(), strict=True))
    assert all(layer.zeros == layer.zeros_before for layer in report.layers if layer.kept)


def test_a_convolution_of_more_values_than_int8_has_keeps_them_by_output_channel(tmp_path):
    rng = np.random.default_rng(4)
    model = tf_keras.Sequential([layers.Input((8, 8, 4), name="image"), layers.Conv2D(12, 5, name="conv"), layers.GlobalMaxPooling2D()])
    model.compile("adam", "mse")
    channels = [rng.permutation(np.resize(rng.normal(size=30), 100)) for _ in range(12)]
    model.get_layer("conv").set_weights([np.stack(channels, axis=-1).reshape(5, 5, 4, 12), np.zeros(12)])
    data = tf.data.Dataset.from_tensor_slices(({"image": rng.normal(size=(64, 8, 8, 4))}, rng.normal(size=(64, 12))))
    quantized, report = train_quantized(model, data, qat())
    told = next(layer for layer in report.layers if layer.layer == "conv")
    assert (told.kept, told.by_channel, told.values_before, told.values) == (("clusters",), True, 30, 30)
    [kernel] = kernels(flatbuffer(tmp_path, quantized, "int8"))
    assert [np.unique(channel).size <= 30 and np.abs(channel).max() == 127 for channel in kernel] == [True] * 12
    assert np.unique(kernel).size > 30

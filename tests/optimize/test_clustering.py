"""Clustering: as many values as asked for and no more, zeros where they were, and a model that is otherwise the one given."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.clustering.centroids import share
from tfx_edge.schemas import ClusteringConfig, ConfigError, EdgeError, FineTuningConfig
from tfx_edge.schemas.training import EarlyStopping

FINE_TUNING = FineTuningConfig(label_key="y", epochs=2, batch_size=32, learning_rate=0.003)


def config(clusters=None, tuning=None, **fields):
    return ClusteringConfig(clusters=clusters or {"*": 8}, fine_tuning=FINE_TUNING.model_copy(update=tuning or {}), **fields)


def images(count=200):
    """Bright above or bright below."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, count)
    pixels = rng.uniform(0, 0.4, (count, 8, 8, 1)).astype(np.float32)
    pixels[labels == 0, :4] += 0.5
    pixels[labels == 1, 4:] += 0.5
    return {"image": pixels}, labels


def dataset():
    return tf.data.Dataset.from_tensor_slices(images())


@pytest.fixture(scope="module")
def model():
    """Trained, its convolution and dense kernel half zero."""
    tf_keras.utils.set_random_seed(7)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2D(6, 3, activation="relu", name="conv")(inputs)
    x = layers.DepthwiseConv2D(3, name="depthwise")(x)
    x = layers.BatchNormalization(momentum=0.5, name="norm")(x)
    x = layers.Dense(12, "relu", name="hidden")(layers.Flatten()(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(x), name="images")
    model.compile(tf_keras.optimizers.Adam(0.003), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(*images(), epochs=6, verbose=0)
    for name in ("conv", "hidden"):
        kernel, bias = model.get_layer(name).get_weights()
        kernel[np.abs(kernel) < np.median(np.abs(kernel))] = 0
        model.get_layer(name).set_weights([kernel, bias])
    return model


def kernel(model, name):
    return model.get_layer(name).get_weights()[0]


def distinct(values):
    return len(set(values.ravel().tolist()))


@pytest.mark.parametrize("initialization", ["linear", "random", "density_based", "kmeans_plus_plus"])
def test_each_way_to_start_keeps_zeros_and_gives_few_values(model, initialization):
    before = kernel(model, "hidden")
    shared = share(before, 8, False, config(initialization=initialization)).project(tf.constant(before)).numpy()
    np.testing.assert_array_equal(shared == 0, before == 0)
    assert 3 <= distinct(shared) <= 8
    assert np.abs(shared - before).max() < np.ptp(before) / 2


def test_each_kernel_keeps_its_zeros_and_takes_few_values_after_training(model):
    clustered, report = cluster(model, dataset(), config({"hidden": 16, "*": 8}))
    for name, most in (("conv", 8), ("hidden", 16), ("head", 8)):
        before, after = kernel(model, name), kernel(clustered, name)
        np.testing.assert_array_equal(after == 0, before == 0)
        assert 3 <= distinct(after) <= most, name
        assert np.abs(after - before).max() < np.ptp(before), name
    told = {layer.layer: layer for layer in report.layers}
    assert [told["hidden"].clusters, told["conv"].clusters] == [16, 8]
    assert (told["conv"].values_before, told["conv"].values) == (distinct(kernel(model, "conv")), distinct(kernel(clustered, "conv")))
    assert told["hidden"].zeros == told["hidden"].zeros_before == int((kernel(model, "hidden") == 0).sum())
    assert told["depthwise"].reason == "tfmot clusters no weight of the layer type DepthwiseConv2D"
    assert clustered.evaluate(*images(), verbose=0)[1] > 0.95


def test_the_shared_values_are_trained_and_the_input_stays(model):
    before = [w.copy() for w in model.get_weights()]
    clustered, _ = cluster(model, dataset(), config())
    start = share(kernel(model, "hidden"), 8, False, config()).project(tf.constant(kernel(model, "hidden"))).numpy()
    assert not np.isin(np.setdiff1d(kernel(clustered, "hidden"), [0]), start).any()
    assert not np.array_equal(clustered.get_layer("norm").get_weights()[2], model.get_layer("norm").get_weights()[2])
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
    assert clustered.input_names == ["image"] and clustered.loss is not None


def test_the_same_seed_gives_the_same_weights(model):
    first, second = (cluster(model, dataset(), config(initialization="random"))[0].get_weights() for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_early_stopping_by_other_examples_keeps_the_best_epoch_and_the_shared_values(model):
    features, labels = images()
    against = tf.data.Dataset.from_tensor_slices((features, 1 - labels))  # the better the training, the worse these
    stopping = {"epochs": 9, "early_stopping": EarlyStopping(patience=1)}
    stopped, _ = cluster(model, dataset(), config(tuning=stopping), validation=against)
    once, _ = cluster(model, dataset(), config(tuning={"epochs": 1}))
    for found, expected in zip(stopped.get_weights(), once.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)  # a mean of equal values may be rounded
    assert distinct(kernel(stopped, "hidden")) <= 8


def test_per_channel_the_number_holds_for_each_output_channel_of_a_convolution(model):
    clustered, report = cluster(model, dataset(), config({"conv": 4, "head": 4}, per_channel=True))
    conv = kernel(clustered, "conv")
    assert all(distinct(conv[..., channel]) <= 4 for channel in range(6)) and distinct(conv) > 4
    assert distinct(kernel(clustered, "head")) <= 4  # not a convolution
    assert {layer.layer: layer.per_channel for layer in report.layers if layer.clusters} == {"conv": True, "head": False}


def test_without_preserving_sparsity_zeros_may_move(model):
    clustered, _ = cluster(model, dataset(), config(preserve_sparsity=False))
    assert not (kernel(clustered, "hidden") == 0).any()
    assert distinct(kernel(clustered, "hidden")) <= 8


def test_recurrent_and_embedding_weights_are_clustered_and_padding_stays_masked():
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 20, (64, 4))
    tokens[:, 3:] = 0
    labels = tokens[:, 0] % 2
    tf_keras.utils.set_random_seed(1)
    inputs = layers.Input((4,), name="tokens")
    x = layers.Bidirectional(layers.LSTM(5, unroll=True), name="lstm")(layers.Embedding(20, 6, mask_zero=True, name="words")(inputs))
    model = tf_keras.Model(inputs, layers.Dense(1, "sigmoid", name="head")(x))
    model.compile("adam", "binary_crossentropy")
    data = tf.data.Dataset.from_tensor_slices(({"tokens": tokens}, labels))
    clustered, report = cluster(model, data, config({"*": 5}))
    weights = {w.name: w.numpy() for w in clustered.weights}
    kernels = [w for name, w in weights.items() if "kernel" in name or "embeddings" in name]
    assert len(kernels) == 6 and all(distinct(w) <= 5 for w in kernels)
    shorter = clustered(np.where(tokens == 0, 0, tokens)).numpy()
    other = weights["words/embeddings:0"].copy()
    other[0] += 9  # the padding's row
    clustered.get_layer("words").set_weights([other])
    np.testing.assert_array_equal(clustered(tokens).numpy(), shorter)
    assert [layer.layer for layer in report.layers] == ["words", "lstm", "head"]


def test_kmeans_finds_the_clumps_of_clumped_weights():
    rng = np.random.default_rng(3)
    clumps = np.array([-2.0, -0.5, 0.25, 1.0, 3.0])
    member = rng.integers(0, 5, (40, 10))
    weights = (clumps[member] + rng.normal(0, 0.01, member.shape)).astype(np.float32)
    pattern = share(weights, 5, False, config())
    shared = pattern.project(tf.constant(weights)).numpy()
    for clump in range(5):
        assert distinct(shared[member == clump]) == 1
        np.testing.assert_allclose(shared[member == clump], weights[member == clump].mean(), rtol=1e-5)


@pytest.mark.parametrize(
    ("clusters", "text"),
    [
        ({"convv": 8}, "pattern 'convv' matches no layer of model 'images', which has"),
        ({"norm": 8, "depth*": 8}, "norm: tfmot clusters no weight of the layer type BatchNormalization"),
        ({"head": 400}, "head: its kernel has 24 weights, no more than the 400 clusters"),
    ],
)
def test_what_cannot_be_clustered_is_named(model, clusters, text):
    with pytest.raises(EdgeError) as error:
        cluster(model, dataset(), config(clusters))
    assert text in str(error.value) and "\n" not in str(error.value)


def test_too_few_clusters_are_refused_when_the_config_is_made():
    with pytest.raises(ConfigError, match="clusters 'conv': 2 is too few; expected 3 or more, zero included"):
        config({"conv": 2})
    assert config({"conv": 2}, preserve_sparsity=False).clusters == {"conv": 2}

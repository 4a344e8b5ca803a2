"""One technique after another: what the earlier one put into a kernel, the later one leaves there."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    ClusteringConfig,
    EdgeError,
    EnergyRank,
    Filters,
    FineTuningConfig,
    LowRankConfig,
    PruningConfig,
    QatConfig,
    SensitivityScan,
)

TUNING = FineTuningConfig(label_key="y", epochs=2, batch_size=16, learning_rate=0.01)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def dataset():
    signals = RNG.normal(size=(64, 12, 3)).astype("f4")
    return tf.data.Dataset.from_tensor_slices(({"x": signals}, (signals[:, :, 0].mean(axis=1) > 0).astype(int)))


@pytest.fixture(scope="module")
def shared(dataset):
    """Kernels 70 % zero, with five values each: a layer that tfmot can't train quantized among them."""
    tf_keras.utils.set_random_seed(2)
    x = tf_keras.Input((12, 3), name="x")
    h = layers.Conv1D(8, 3, activation="relu", name="windows")(x)
    h = layers.Dense(16, activation="relu", name="hidden")(layers.Flatten(name="flat")(h))
    model = tf_keras.Model(x, layers.Dense(2, name="head")(h), name="signals")
    model.compile(tf_keras.optimizers.Adam(0.01), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    pruned, _ = prune(model, dataset, PruningConfig(target_sparsity=0.7, fine_tuning=TUNING))
    return cluster(pruned, dataset, ClusteringConfig(clusters={"*": 5}, fine_tuning=TUNING))[0]


def kernel(model, name):
    [found] = [v for v in model.weights if v.name.split("/")[-2] == name and v.name.endswith("kernel:0")]
    return found.numpy()


TECHNIQUES = {
    "prune": lambda m, d: prune(m, d, PruningConfig(target_sparsity=0.8, layers=("head",), fine_tuning=TUNING)),
    "remove_filters": lambda m, d: prune(
        m, d, PruningConfig(target_sparsity=0.3, layers=("hidden",), granularity=Filters(), fine_tuning=TUNING)
    ),
    "cluster": lambda m, d: cluster(m, d, ClusteringConfig(clusters={"head": 3}, fine_tuning=TUNING)),
    "factorize": lambda m, d: factorize(
        m, d, LowRankConfig(rank=EnergyRank(energy=0.3), layers=("hidden",), min_saving=0, fine_tuning=TUNING)
    ),
    "train_quantized": lambda m, d: train_quantized(m, d, QatConfig(layers=("hidden",), fine_tuning=TUNING)),
}


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_zeros_and_shared_values_stay_in_layers_that_a_technique_leaves(technique, shared, dataset):
    after, report = TECHNIQUES[technique](shared, dataset)
    before, kept = kernel(shared, "windows"), kernel(after, "windows")
    assert (before == 0).mean() > 0.6 and np.unique(before).size == 5
    assert (kept[before == 0] == 0).all() and np.unique(kept).size == 5
    assert not np.array_equal(before, kept)  # it was trained
    if technique == "train_quantized":
        [told] = [layer for layer in report.layers if layer.layer == "windows"]
        assert not told.emulated and told.kept == ("sparsity", "clusters")
        assert told.zeros == told.zeros_before == (before == 0).sum() and told.values == told.values_before == 5


@pytest.fixture(scope="module")
def two_outputs():
    x = tf_keras.Input((6,), name="x")
    h = layers.Dense(12, "relu", name="hidden")(layers.Dense(12, "relu", name="first")(x))
    return tf_keras.Model(x, [layers.Dense(3, "softmax", name="kind")(h), layers.Dense(1, name="size")(h)], name="two")


ALL = {
    "prune": lambda m, d, t: prune(m, d, PruningConfig(layers=("hidden",), fine_tuning=t)),
    "prune_after_a_scan": lambda m, d, t: prune(
        m, d, PruningConfig(layers=("hidden", "first"), sensitivity=SensitivityScan(), fine_tuning=t)
    ),
    "remove_filters": lambda m, d, t: prune(m, d, PruningConfig(layers=("hidden",), granularity=Filters(), fine_tuning=t)),
    "cluster": lambda m, d, t: cluster(m, d, ClusteringConfig(clusters={"hidden": 3}, fine_tuning=t)),
    "factorize": lambda m, d, t: factorize(
        m, d, LowRankConfig(rank=EnergyRank(energy=0.3), layers=("hidden",), min_saving=0, fine_tuning=t)
    ),
    "train_quantized": lambda m, d, t: train_quantized(m, d, QatConfig(layers=("hidden",), fine_tuning=t)),
}


@pytest.mark.parametrize("technique", ALL)
def test_a_model_with_two_outputs_that_was_never_compiled_comes_back_so(technique, two_outputs):
    values = RNG.normal(size=(48, 6)).astype("f4")
    labels = {"kind": values[:, :3].argmax(axis=1), "size": values[:, 3]}
    dataset = tf.data.Dataset.from_tensor_slices(({"x": values}, labels))
    losses = {"kind": "sparse_categorical_crossentropy", "size": "mean_squared_error"}
    tuning = FineTuningConfig(label_key="y", epochs=1, batch_size=16, output_losses=losses)
    after, _ = ALL[technique](two_outputs, dataset, tuning)
    assert after.output_names == ["kind", "size"]
    assert after.get_compile_config() is None and after.optimizer is None


@pytest.mark.parametrize("technique", ALL)
def test_a_model_that_emulates_int8_is_refused_with_the_order_that_works(technique, two_outputs, dataset):
    emulating = tf_keras.Sequential([layers.InputLayer((6,), name="x"), layers.Dense(12, name="hidden"), layers.Dense(2, name="head")])
    emulating = tfmot.quantization.keras.quantize_model(emulating)
    with pytest.raises(EdgeError, match="emulates int8 already .*before quantization-aware training"):
        ALL[technique](emulating, dataset, TUNING)

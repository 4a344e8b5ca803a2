"""Losses, metrics and labels go by the names of the outputs of the user's own model, whatever a technique wraps its layers in."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.distillation import distill
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    Block,
    ClusteringConfig,
    DistillationConfig,
    Filters,
    FineTuningConfig,
    LowRankConfig,
    MacBudget,
    MOfN,
    PruningConfig,
    QatConfig,
    Unstructured,
)

LOSSES = {"kind": "sparse_categorical_crossentropy", "size": "mean_squared_error"}
X = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
KIND, SIZE = X[:, :4].argmax(1), X.sum(1, keepdims=True)


def two_outputs(by_name=False):
    tf_keras.utils.set_random_seed(0)
    inputs = layers.Input((8,), name="x")
    hidden = layers.Dense(16, "relu", name="hidden")(inputs)
    if by_name:  # the keys count, not the layers
        model = tf_keras.Model(inputs, {"size": layers.Dense(1)(hidden), "kind": layers.Dense(4, "softmax")(hidden)})
    else:
        model = tf_keras.Model(inputs, [layers.Dense(4, "softmax", name="kind")(hidden), layers.Dense(1, name="size")(hidden)])
    model.compile("adam", LOSSES, metrics={"kind": ["accuracy"], "size": ["mae"]})
    return model


def one_output(name="kind"):
    tf_keras.utils.set_random_seed(0)
    inputs = layers.Input((8,), name="x")
    hidden = layers.Dense(16, "relu", name="hidden")(inputs)
    model = tf_keras.Model(inputs, layers.Dense(4, "softmax", name=name)(hidden))
    model.compile("adam", {name: LOSSES["kind"]}, metrics={name: ["accuracy"]})
    return model


def pruned(granularity):
    return lambda model, data, tuning: prune(model, data, PruningConfig(granularity=granularity, fine_tuning=tuning))


TECHNIQUES = {
    "unstructured": pruned(Unstructured()),
    "block": pruned(Block(inputs=4)),
    "m_of_n": pruned(MOfN()),
    "filters": pruned(Filters()),
    "clusters": lambda model, data, tuning: cluster(model, data, ClusteringConfig(clusters={"*": 4}, fine_tuning=tuning)),
    "low_rank": lambda model, data, tuning: factorize(model, data, LowRankConfig(rank=MacBudget(), fine_tuning=tuning)),
    "qat": lambda model, data, tuning: train_quantized(model, data, QatConfig(fine_tuning=tuning)),
}


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("by_name", [False, True], ids=["list", "dict"])
def test_a_model_with_several_outputs_trains_each_by_its_name(technique, by_name):
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, {"kind": KIND, "size": SIZE}))
    tuning = FineTuningConfig(label_key="y", epochs=1, output_losses=LOSSES)
    model = two_outputs(by_name)
    result, _ = TECHNIQUES[technique](model, data, tuning)
    assert result.output_names == model.output_names
    *_, accuracy, mae = result.evaluate(X, {"kind": KIND, "size": SIZE}, verbose=0)
    said = result(X)
    kinds, sizes = (said["kind"], said["size"]) if by_name else said
    assert accuracy == pytest.approx(np.mean(np.argmax(kinds, 1) == KIND), abs=1e-6)
    assert mae == pytest.approx(np.mean(np.abs(sizes - SIZE)), rel=1e-4)


@pytest.mark.parametrize("technique", [*TECHNIQUES, "distill"])
def test_one_output_compiled_by_its_name_keeps_its_loss_and_metric(technique):
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, KIND))
    tuning = FineTuningConfig(label_key="y", epochs=1)
    if technique == "distill":
        result, report = distill(one_output(), data, DistillationConfig(fine_tuning=tuning))
        assert report.task == "classification"  # which only the loss tells
        assert len(report.losses["accuracy"]) == 1
    else:
        result, _ = TECHNIQUES[technique](one_output(), data, tuning)
    loss, accuracy = result.evaluate(X, KIND, verbose=0)
    said = result(X).numpy()
    assert loss == pytest.approx(-np.log(said[np.arange(64), KIND]).mean(), rel=1e-4)
    assert accuracy == pytest.approx(np.mean(said.argmax(1) == KIND), abs=1e-6)


def test_a_student_whose_output_has_another_name_gets_the_teachers_loss_and_metric_under_it():
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, KIND))
    settings = DistillationConfig(fine_tuning=FineTuningConfig(label_key="y", epochs=1))
    student, _ = distill(one_output(), data, settings, student_fn=lambda teacher: one_output("mine"))
    assert student.output_names == ["mine"]
    assert len(student.evaluate(X, KIND, verbose=0)) == 2

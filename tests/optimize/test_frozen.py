"""Frozen layers stay as they are in every technique, with one reason; a student, which is made anew, learns in all of its layers."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.distillation import distill, scaled_student
from tfx_edge.optimize.frozen import FROZEN, is_frozen
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    ClusteringConfig,
    DistillationConfig,
    EdgeError,
    Filters,
    FineTuningConfig,
    LowRankConfig,
    MacBudget,
    PruningConfig,
    QatConfig,
    ScaledStudent,
    Unstructured,
)

X = np.random.default_rng(0).normal(size=(48, 8, 8, 1)).astype(np.float32)
Y = (X.mean((1, 2, 3)) > 0).astype(np.int64)
DATA = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
TUNING = FineTuningConfig(label_key="y", epochs=1, batch_size=16, learning_rate=0.05)
BASE = ("conv", "norm", "wide")

TECHNIQUES = {
    "unstructured": lambda m: prune(m, DATA, PruningConfig(granularity=Unstructured(), fine_tuning=TUNING)),
    "filters": lambda m: prune(m, DATA, PruningConfig(granularity=Filters(), fine_tuning=TUNING)),
    "clusters": lambda m: cluster(m, DATA, ClusteringConfig(clusters={"*": 4}, fine_tuning=TUNING)),
    "low_rank": lambda m: factorize(m, DATA, LowRankConfig(rank=MacBudget(), fine_tuning=TUNING)),
}


def model(frozen=BASE):
    tf_keras.utils.set_random_seed(0)
    made = tf_keras.Sequential(
        [
            layers.InputLayer((8, 8, 1), name="x"),
            layers.Conv2D(8, 3, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.Flatten(),
            layers.Dense(16, "relu", name="wide"),
            layers.Dense(12, "relu", name="free"),
            layers.Dense(2, "softmax", name="head"),
        ],
        name="transferred",
    )
    for name in frozen:
        made.get_layer(name).trainable = False
    made.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return made


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_frozen_layers_keep_their_weights_and_the_report_says_why(technique):
    given = model()
    result, report = TECHNIQUES[technique](given)
    reasons = {layer.layer: layer.reason for layer in report.layers}
    assert {reasons[name] for name in BASE if name in reasons} == {FROZEN} and reasons["conv"] == reasons["wide"] == FROZEN
    assert reasons["free"] == ""
    for name in BASE:
        assert not result.get_layer(name).trainable
        for old, new in zip(given.get_layer(name).get_weights(), result.get_layer(name).get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)
    assert any(v.shape != w.shape or not np.array_equal(v, w) for v, w in zip(given.get_weights(), result.get_weights(), strict=False))


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_where_all_is_frozen_there_is_nothing_to_do_and_one_line_says_so(technique):
    given = model()
    given.trainable = False
    with pytest.raises(
        EdgeError, match=r"(conv|wide): it is frozen \(trainable is False\).*unfreeze some: layer.trainable = True"
    ) as error:
        TECHNIQUES[technique](given)
    assert "\n" not in str(error.value)


def test_quantization_aware_training_emulates_rounding_of_frozen_weights_and_leaves_them():
    given = model(("conv", "wide"))
    result, report = train_quantized(given, DATA, QatConfig(fine_tuning=TUNING))
    assert {layer.layer for layer in report.layers if layer.emulated} >= {"conv", "wide"}
    for name in ("conv", "wide"):
        [kernel] = [v for v in result.weights if v.name.endswith(f"{name}/kernel:0")]
        np.testing.assert_array_equal(kernel, given.get_layer(name).kernel)


def test_frozen_is_what_the_user_froze_also_inside_of_a_wrapper():
    wrapped = layers.TimeDistributed(layers.Dense(2, trainable=False))
    normalization = layers.Normalization(mean=0.0, variance=1.0)
    for layer in (wrapped, normalization):
        layer(np.zeros((1, 3, 4), np.float32))
    adapted = layers.Normalization()
    adapted.adapt(X)
    assert is_frozen(wrapped) and not is_frozen(adapted) and not is_frozen(normalization)


@pytest.mark.parametrize("frozen", [(), BASE, (*BASE, "free", "head")], ids=["none", "base", "all"])
def test_the_student_of_a_frozen_teacher_is_as_narrow_as_any_and_trains(frozen):
    student = scaled_student(model(frozen), ScaledStudent(width=0.5))
    assert [student.get_layer("conv").filters, student.get_layer("wide").units, student.get_layer("free").units] == [4, 8, 6]
    assert all(layer.trainable for layer in student.layers)
    assert student.count_params() == scaled_student(model(()), ScaledStudent(width=0.5)).count_params()


def test_the_student_of_a_frozen_teacher_learns():
    given = model((*BASE, "free", "head"))
    before = scaled_student(given, ScaledStudent())
    student, _ = distill(given, DATA, DistillationConfig(fine_tuning=TUNING))
    assert student.count_params() == before.count_params() < given.count_params()
    assert np.ptp(student.get_layer("wide").bias) > 0  # it starts at zero


def test_a_student_that_saves_nothing_or_cannot_learn_is_refused():
    inputs = tf_keras.Input((8, 8, 1), name="x")
    shallow = tf_keras.Model(inputs, layers.Dense(2, "softmax")(layers.Flatten()(inputs)), name="shallow")
    with pytest.raises(EdgeError, match="teacher 'shallow', scaled to width 0.5 and depth 1, keeps its 130 weights"):
        scaled_student(shallow, ScaledStudent(width=0.5))
    with pytest.raises(EdgeError, match="can't learn: all its layers are frozen"):
        distill(model(()), DATA, DistillationConfig(fine_tuning=TUNING), student_fn=lambda teacher: model((*BASE, "free", "head")))

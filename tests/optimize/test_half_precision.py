"""Models of policy mixed_float16: refused by every technique in one line, brought to float32 by edge preparation."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.litert.convert import convert
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.distillation import distill
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.half_precision import half_layers
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.preparation import prepare
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    ClusteringConfig,
    DistillationConfig,
    EdgeError,
    Filters,
    FineTuningConfig,
    LowRankConfig,
    PruningConfig,
    QatConfig,
)

X = np.random.default_rng(0).uniform(size=(32, 6, 4)).astype(np.float32)
DATA = tf.data.Dataset.from_tensor_slices(({"x": X}, np.arange(32) % 3))
TUNING = FineTuningConfig(label_key="y", epochs=1)


@pytest.fixture
def mixed(request):
    """Nested, wrapped and preprocessing layers, and an operator, but for the head of a policy of 16 bits."""
    tf_keras.utils.set_random_seed(0)
    tf_keras.mixed_precision.set_global_policy(getattr(request, "param", "mixed_float16"))
    try:
        inner = tf_keras.Sequential([layers.InputLayer((6, 8)), layers.Conv1D(4, 3, activation="relu", name="conv")], name="inner")
        inputs = layers.Input((6, 4), name="x")
        x = layers.Rescaling(2.0, name="scaled")(inputs)
        x = layers.TimeDistributed(layers.Dense(8, "relu"), name="distributed")(x)
        x = layers.Flatten()(inner(x) * 2)
        outputs = layers.Dense(3, "softmax", dtype="float32", name="head")(x)
        model = tf_keras.Model(inputs, outputs, name="mixed")
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")
    return model


@pytest.mark.parametrize(
    "technique",
    [
        lambda m: prune(m, DATA, PruningConfig(fine_tuning=TUNING)),
        lambda m: prune(m, DATA, PruningConfig(granularity=Filters(), fine_tuning=TUNING)),
        lambda m: cluster(m, DATA, ClusteringConfig(clusters={"*": 4}, fine_tuning=TUNING)),
        lambda m: factorize(m, DATA, LowRankConfig(fine_tuning=TUNING)),
        lambda m: distill(m, DATA, DistillationConfig(fine_tuning=TUNING)),
        lambda m: train_quantized(m, DATA, QatConfig(fine_tuning=TUNING)),
    ],
    ids=["unstructured", "filters", "clusters", "low_rank", "distill", "qat"],
)
def test_a_technique_names_the_policy_the_layers_and_the_cure(mixed, technique):
    with pytest.raises(EdgeError, match=r"layers .*distributed.*conv.* have the dtype policy 'mixed_float16'.*prepare\(model\)") as error:
        technique(mixed)
    assert "head" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("mixed", ["mixed_float16", "mixed_bfloat16"], indirect=True)
def test_a_prepared_model_has_the_same_weights_in_float32_and_converts(mixed, tmp_path):
    prepared, report = prepare(mixed, {"x": X})
    assert not list(half_layers(prepared)) and list(half_layers(mixed))
    assert {r.layer for r in report.rewrites if r.became == "itself, in float32"} >= {"distributed", "conv", "scaled"}
    for old, new in zip(mixed.get_weights(), prepared.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert 0 < report.max_abs_difference < 0.05
    float32 = from_keras_model(prepared)
    float32.save(str(tmp_path))
    np.testing.assert_allclose(
        Runner(convert(str(tmp_path)))({"x": X})[prepared.output_names[0]], float32.predict({"x": X})[prepared.output_names[0]], atol=1e-5
    )
    assert prepare(prepared, {"x": X})[0] is prepared


def test_a_prepared_model_is_pruned(mixed):
    _, report = prune(prepare(mixed, {"x": X})[0], DATA, PruningConfig(target_sparsity=0.5, fine_tuning=TUNING))
    assert report.sparsity == pytest.approx(0.5, abs=0.02)


def test_a_global_policy_of_16_bits_is_refused_for_a_float32_model(mixed):
    prepared, _ = prepare(mixed, {"x": X})
    tf_keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        with pytest.raises(EdgeError, match=r"global dtype policy is 'mixed_float16'.*set_global_policy\('float32'\)"):
            prune(prepared, DATA, PruningConfig(fine_tuning=TUNING))
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")


def test_predict_takes_tensors_as_arrays(mixed):
    model = from_keras_model(mixed)
    given, expected = model.predict({"x": tf.constant(X)}), model.predict({"x": X})
    np.testing.assert_array_equal(given["head"], expected["head"])
    with pytest.raises(EdgeError, match="feature 'x' is a RaggedTensor"):
        model.predict({"x": tf.ragged.constant([[1.0], [2.0, 3.0]])})

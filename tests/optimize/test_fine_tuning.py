"""Fine-tuning: the model's own loss or a named one, on features by name, the same for the same seed."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.fine_tuning import count_steps, fine_tune
from tfx_edge.schemas import EdgeError, FineTuningConfig

CONFIG = FineTuningConfig(label_key="species", epochs=4, batch_size=16, learning_rate=0.02)
NAMES = ("a", "b", "c", "d")


def examples(count=200, seed=0):
    """Scalars by name; the label is the largest of the first three."""
    values = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    return dict(zip(NAMES, values.T, strict=True)), values[:, :3].argmax(axis=1)


def dataset(features=None, labels=None):
    return tf.data.Dataset.from_tensor_slices(examples() if features is None else (features, labels))


def scalar_model(compiled=True, dropout=0.0, seed=1):
    tf_keras.utils.set_random_seed(seed)
    inputs = [layers.Input((1,), name=name) for name in NAMES]
    hidden = layers.Dense(12, "relu")(layers.Concatenate()(inputs))
    model = tf_keras.Model(inputs, layers.Dense(3)(layers.Dropout(dropout)(hidden)), name="tiny")
    if compiled:
        model.compile("sgd", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def test_scalar_features_feed_inputs_of_one_column_and_the_loss_of_the_model_falls():
    history = fine_tune(scalar_model(), dataset(), CONFIG).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    assert history["accuracy"][-1] > 0.8


def test_a_loss_named_in_the_config_trains_a_model_that_was_never_compiled():
    model = scalar_model(compiled=False)
    history = fine_tune(
        model, dataset(), CONFIG.model_copy(update={"loss": "sparse_categorical_crossentropy", "from_logits": True})
    ).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]


@pytest.mark.parametrize(
    ("loss", "label"), [("binary_crossentropy", np.float32), ("mean_squared_error", np.float32), ("categorical_crossentropy", None)]
)
def test_each_named_loss_is_the_formula_of_its_name(loss, label):
    features, classes = examples(64)
    labels = np.eye(3, dtype=np.float32)[classes] if label is None else (classes == 0).astype(label)
    inputs = layers.Input((4,), name="x")
    output = layers.Dense(3, "softmax")(inputs) if label is None else layers.Dense(1, "sigmoid")(inputs)
    model = tf_keras.Model(inputs, output)
    x = np.stack(list(features.values()), axis=1)
    p = model(x).numpy().astype(np.float64)
    y = labels if label is None else labels[:, None]
    expected = {
        "binary_crossentropy": -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)),
        "mean_squared_error": np.mean((y - p) ** 2),
        "categorical_crossentropy": -np.mean(np.sum(y * np.log(p), axis=1)),
    }[loss]
    config = FineTuningConfig(label_key="y", epochs=1, batch_size=64, loss=loss)  # one step: its loss is of the given weights
    history = fine_tune(model, tf.data.Dataset.from_tensor_slices(({"x": x}, labels)), config).history
    np.testing.assert_allclose(history["loss"][0], expected, rtol=1e-4)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    def tuned(seed):
        model = scalar_model(dropout=0.5)
        tf_keras.utils.set_random_seed(next(others))  # what else ran in the process must not matter
        fine_tune(model, dataset(), CONFIG.model_copy(update={"seed": seed}))
        return np.concatenate([w.ravel() for w in model.get_weights()])

    others = itertools.count()
    first = tuned(3)
    np.testing.assert_array_equal(first, tuned(3))
    assert np.abs(first - tuned(4)).max() > 1e-4


def test_a_model_that_was_saved_and_loaded_keeps_its_loss(tmp_path):
    scalar_model().save(str(tmp_path / "model"), save_format="tf")
    loaded = tf_keras.models.load_model(str(tmp_path / "model"))
    expected = fine_tune(scalar_model(), dataset(), CONFIG).history["loss"]
    np.testing.assert_allclose(fine_tune(loaded, dataset(), CONFIG).history["loss"], expected, rtol=1e-5)


def test_without_any_loss_the_error_names_the_fix():
    with pytest.raises(EdgeError, match=r"'tiny'.*FineTuningConfig.loss"):
        fine_tune(scalar_model(compiled=False), dataset(), CONFIG)


def test_a_missing_feature_is_named_before_training():
    model = scalar_model()
    before = model.get_weights()
    features, labels = examples()
    del features["c"]
    with pytest.raises(EdgeError, match=r"no feature 'c'.*'a', 'b', 'd'"):
        fine_tune(model, dataset(features, labels), CONFIG)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_feature_with_the_wrong_number_of_values_is_named_with_both_shapes():
    features, labels = examples()
    features["b"] = np.zeros((200, 2), np.float32)
    with pytest.raises(EdgeError, match=r"'b'.*\(2,\).*\(1,\)"):
        fine_tune(scalar_model(), dataset(features, labels), CONFIG)


def test_a_text_label_is_named():
    features, labels = examples()
    with pytest.raises(EdgeError, match=r"label 'species' is string"):
        fine_tune(scalar_model(), dataset(features, labels.astype(str)), CONFIG)


def test_a_label_out_of_range_is_an_error_of_one_line():
    features, labels = examples()
    with pytest.raises(EdgeError, match=r"(?i)label.*valid range") as error:
        fine_tune(scalar_model(), dataset(features, labels + 1), CONFIG)
    assert "\n" not in str(error.value)


def test_a_loss_that_becomes_nan_stops_training_and_names_the_step():
    features, labels = examples()
    features["a"][150] = np.inf  # not NaN, of which a ReLU makes 0
    with pytest.raises(EdgeError, match=r"loss became nan in epoch 1, step \d+.*learning_rate \(0.02\).*'species'"):
        fine_tune(scalar_model(), dataset(features, labels), CONFIG)


def test_batches_instead_of_examples_are_refused():
    with pytest.raises(EdgeError, match=r"feature 'a': an example has shape \(None,\)"):
        fine_tune(scalar_model(), dataset().batch(8), CONFIG)


def test_a_model_with_two_outputs_is_refused():
    inputs = layers.Input((1,), name="a")
    model = tf_keras.Model(inputs, [layers.Dense(1, name="p")(inputs), layers.Dense(1, name="q")(inputs)])
    with pytest.raises(EdgeError, match=r"2 outputs \(p, q\)"):
        fine_tune(model, dataset(), CONFIG)


def test_steps_are_counted_as_training_takes_them():
    seen = []
    model = scalar_model()
    count = tf_keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: seen.append(batch))
    unknown = dataset().filter(lambda features, label: features["a"] > 0)  # a size that only reading tells
    fine_tune(model, unknown, CONFIG, callbacks=[count])
    assert count_steps(unknown, CONFIG) == len(seen)
    assert count_steps(dataset(), CONFIG) == 4 * 13


def test_no_examples_and_endless_examples_are_refused():
    with pytest.raises(EdgeError, match=r"split 'train': no examples"):
        count_steps(dataset().filter(lambda features, label: False), CONFIG)
    with pytest.raises(EdgeError, match="repeat"):
        count_steps(dataset().repeat(), CONFIG)

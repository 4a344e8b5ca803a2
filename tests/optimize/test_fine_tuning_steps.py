"""Optimizers, learning rates, limits and losses of a training, against the formulas by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.optimize.fine_tuning.optimizers import learning_rate
from tfx_edge.schemas import (
    Adam,
    AdamW,
    ConfigError,
    CosineRate,
    EdgeError,
    ExponentialRate,
    FineTuningConfig,
    GradientClipping,
    RmsProp,
    Sgd,
    StepRate,
)

X = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5, 3.0]) + 10).astype(np.float32)


def config(**settings):
    return FineTuningConfig(**{"label_key": "y", "epochs": 1, "batch_size": 48, "loss": "mean_squared_error", **settings})


def trained(settings, x=X, y=Y, loss=None):
    """Weights before and after, as one vector, and the history."""
    tf_keras.utils.set_random_seed(5)
    model = tf_keras.Model(inputs := layers.Input((4,), name="x"), layers.Dense(1)(inputs))
    before = np.concatenate([w.ravel() for w in model.get_weights()]).astype(np.float64)
    history = fine_tune(model, tf.data.Dataset.from_tensor_slices(({"x": x}, y)), settings).history
    return before, np.concatenate([w.ravel() for w in model.get_weights()]), history


def gradient(weights):
    design = np.column_stack([X, np.ones(len(X))]).astype(np.float64)
    return 2 * design.T @ (design @ weights - Y) / len(X)


def sgd(weights, rate, momentum=0.0, nesterov=False):
    velocity = np.zeros_like(weights)
    for _ in range(3):
        g = gradient(weights)
        velocity = momentum * velocity - rate * g
        weights = weights + (momentum * velocity - rate * g if nesterov else velocity)
    return weights


def adam(weights, rate, decay=0.0):
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    for t in range(1, 4):
        weights = weights * (1 - rate * decay)
        g = gradient(weights) if not decay else gradient(weights / (1 - rate * decay))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        weights = weights - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)
    return weights


def rmsprop(weights, rate):
    v = np.zeros_like(weights)
    for _ in range(3):
        g = gradient(weights)
        v = 0.9 * v + 0.1 * g * g
        weights = weights - rate * g / np.sqrt(v + 1e-7)
    return weights


@pytest.mark.parametrize(
    ("optimizer", "formula"),
    [
        (Sgd(), lambda w: sgd(w, 0.02)),
        (Sgd(momentum=0.8), lambda w: sgd(w, 0.02, 0.8)),
        (Sgd(momentum=0.8, nesterov=True), lambda w: sgd(w, 0.02, 0.8, True)),
        (Adam(), lambda w: adam(w, 0.02)),
        (AdamW(weight_decay=3.0), lambda w: adam(w, 0.02, 3.0)),
        (RmsProp(), lambda w: rmsprop(w, 0.02)),
    ],
)
def test_three_steps_of_each_optimizer_follow_its_formula(optimizer, formula):
    before, after, _ = trained(config(epochs=3, learning_rate=0.02, optimizer=optimizer))
    np.testing.assert_allclose(after, formula(before), rtol=1e-3)


@pytest.mark.parametrize(
    ("clipping", "expected"),
    [
        (GradientClipping(by="value", limit=0.5), lambda g: np.clip(g, -0.5, 0.5)),
        (GradientClipping(by="global_norm", limit=2.0), lambda g: g * 2 / np.linalg.norm(g)),
        (
            GradientClipping(by="norm", limit=2.0),
            lambda g: np.concatenate([g[:4] * min(1, 2 / np.linalg.norm(g[:4])), [2 * np.sign(g[4])]]),
        ),
    ],
)
def test_a_step_is_no_longer_than_its_clipping_allows(clipping, expected):
    before, after, _ = trained(config(learning_rate=1.0, optimizer=Sgd(), clipping=clipping))
    assert np.linalg.norm(gradient(before)) > 4  # or nothing would be clipped
    np.testing.assert_allclose(before - after, expected(gradient(before)), rtol=1e-3)


@pytest.mark.parametrize(
    ("schedule", "share"),
    [
        (ExponentialRate(final=0.01), lambda t: 0.01**t),
        (CosineRate(final=0.2), lambda t: 0.2 + 0.8 * (1 + np.cos(np.pi * t)) / 2),
        (StepRate(factor=0.5, at=(0.25, 0.75)), lambda t: 0.5 ** ((t >= 0.25) + (t >= 0.75))),
    ],
)
def test_the_learning_rate_rises_in_the_warm_up_and_then_follows_its_schedule(schedule, share):
    rate = learning_rate(config(learning_rate=0.4, schedule=schedule, warm_up=0.2), 100)
    got = [float(rate(tf.constant(step, tf.int64))) for step in range(100)]
    np.testing.assert_allclose(got[:20], 0.4 * np.arange(1, 21) / 20, rtol=1e-5)
    np.testing.assert_allclose(got[20:], [0.4 * share(step / 80) for step in range(80)], rtol=1e-4)
    plain = learning_rate(config(learning_rate=0.4, schedule=schedule), 100)
    np.testing.assert_allclose([float(plain(step)) for step in (0, 24, 25, 99)], [0.4 * share(s / 100) for s in (0, 24, 25, 99)], rtol=1e-4)


def test_a_schedule_spans_all_steps_of_the_training():
    rates = []
    model = tf_keras.Model(inputs := layers.Input((4,), name="x"), layers.Dense(1)(inputs))
    watch = tf_keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: rates.append(float(model.optimizer.learning_rate)))
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).filter(lambda features, label: True)  # of unknown size
    fine_tune(model, data, config(epochs=5, batch_size=10, learning_rate=0.1, schedule=CosineRate()), callbacks=[watch])
    assert len(rates) == 25  # in the first epoch Keras shows the step before's
    np.testing.assert_allclose(rates[5:], [0.05 * (1 + np.cos(np.pi * t / 25)) for t in range(6, 26)], atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "formula"),
    [
        ("hinge", lambda y, p: np.maximum(1 - y * p, 0)),
        ("huber", lambda y, p: np.where(np.abs(y - p) < 0.5, (y - p) ** 2 / 2, 0.5 * (np.abs(y - p) - 0.25))),
    ],
)
def test_hinge_and_huber_are_their_formulas(loss, formula):
    y = np.sign(Y - 10).astype(np.float32)
    before, _, history = trained(config(loss=loss, **({"huber_delta": 0.5} if loss == "huber" else {})), y=y)
    predicted = X @ before[:4] + before[4]
    np.testing.assert_allclose(history["loss"][0], formula(y, predicted).mean(), rtol=1e-4)


def test_categorical_hinge_compares_the_right_class_with_the_best_wrong_one():
    y = np.eye(3, dtype=np.float32)[np.arange(48) % 3]
    model = tf_keras.Model(inputs := layers.Input((4,), name="x"), layers.Dense(3)(inputs))
    p = model(X).numpy()
    history = fine_tune(model, tf.data.Dataset.from_tensor_slices(({"x": X}, y)), config(loss="categorical_hinge")).history
    best_wrong = ((1 - y) * p).max(1)  # Keras takes 0 for the right class's place
    assert history["loss"][0] == pytest.approx(np.maximum(1 + best_wrong - p[y == 1], 0).mean(), rel=1e-4)


def two_outputs():
    inputs = layers.Input((4,), name="x")
    return tf_keras.Model(inputs, [layers.Dense(1, name="size")(inputs), layers.Dense(3, "softmax", name="kind")(inputs)])


def test_several_outputs_have_a_loss_each():
    model = two_outputs()
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, {"size": Y, "kind": np.arange(48) % 3}))
    size, kind = (output.numpy() for output in model(X))
    losses = {"size": "mean_squared_error", "kind": "sparse_categorical_crossentropy"}
    history = fine_tune(model, data, config(loss=None, output_losses=losses)).history
    np.testing.assert_allclose(history["size_loss"][0], np.mean((size[:, 0] - Y) ** 2), rtol=1e-4)
    np.testing.assert_allclose(history["kind_loss"][0], -np.log(kind[np.arange(48), np.arange(48) % 3]).mean(), rtol=1e-4)
    with pytest.raises(EdgeError, match=r"output_losses names size, but model .* 2 outputs \(size, kind\)"):
        fine_tune(model, data, config(loss=None, output_losses={"size": "huber"}))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"phases": ({"share": 0.5, "batch_size": 8},)}, "add up to 0.5"),
        ({"class_weights": (1.0, -1.0)}, "class_weights.*greater than or equal to 0"),
        ({"schedule": {"kind": "step", "at": (0.7, 0.3)}}, "must ascend"),
        ({"output_losses": {"a": "huber"}}, "loss and output_losses"),
        ({"optimizer": {"kind": "lion"}}, "'lion'"),
    ],
)
def test_settings_that_dont_fit_are_refused_when_the_config_is_made(settings, text):
    with pytest.raises(ConfigError, match=text):
        config(**settings)

"""What doesn't fit is refused before training, in one line that names it."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.schemas import ConfigError, EarlyStopping, EdgeError, FineTuningConfig, Regularization

X = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
Y = np.arange(40) % 4


def config(**settings):
    return FineTuningConfig(**{"label_key": "y", "epochs": 1, "loss": "sparse_categorical_crossentropy", **settings})


def model(units=4, activation="softmax"):
    return tf_keras.Model(inputs := tf_keras.Input((8,), name="x"), tf_keras.layers.Dense(units, activation)(inputs))


def data(x=X, y=Y):
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y))


@pytest.mark.parametrize(
    ("dataset", "settings", "text"),
    [
        (data(), {"loss": "mean_squared_error"}, r"label 'y' has shape \(\) .*\(4,\)"),
        (data(), {"loss": "hinge"}, r"label 'y' has shape \(\) .*\(4,\)"),
        (data(x=X.reshape(40, 2, 4)), {}, r"feature 'x'.*\(2, 4\).*\(8,\)"),
        (data(x=X.astype(str)), {}, "feature 'x' is string"),
        (data(), {"class_weights": (1.0,) * 6}, "6 weights.*4 classes"),
        (data(), {"class_weights": (1.0,) * 3}, "3 weights.*4 classes"),
        (data(), {"early_stopping": EarlyStopping(split="eval")}, "pass validation="),
        (data().take(3), {"early_stopping": EarlyStopping()}, "holdout 10 leaves no example"),
        (data().filter(lambda features, label: label > 9), {}, "examples are empty"),
        (data().repeat(), {}, "never end"),
        ((X, Y), {}, "tuple; expected a tf.data.Dataset"),
        (data(), {"checkpoint_dir": "/proc/no/folder"}, "FineTuningConfig.checkpoint_dir '/proc/no/folder'"),
        (data(), {"checkpoint_dir": "/proc/self"}, "FineTuningConfig.checkpoint_dir '/proc/self': can't be written to"),  # it exists
        (data(), {"tensorboard_dir": "/proc/no/folder"}, "FineTuningConfig.tensorboard_dir '/proc/no/folder'"),
    ],
)
def test_what_doesnt_fit_is_named_in_one_line_and_nothing_is_trained(dataset, settings, text):
    given = model()
    before = given.get_weights()
    with pytest.raises(EdgeError, match=text) as error:
        fine_tune(given, dataset, config(**settings))
    assert "\n" not in str(error.value) and "stack traces" not in str(error.value)
    for old, new in zip(before, given.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_balanced_classes_of_a_regression_are_refused():
    with pytest.raises(EdgeError, match="balanced.*mean_squared_error"):
        fine_tune(model(1, None), data(), config(loss="mean_squared_error", class_weights="balanced"))


def test_the_error_of_a_label_out_of_range_leaves_the_batch_out():
    with pytest.raises(EdgeError, match="valid range") as error:
        fine_tune(model(), data(y=Y + 1), config())
    assert "Label values" not in str(error.value)


@pytest.mark.parametrize("make", [Regularization, lambda: config(class_weights=(0.0, 0.0)), lambda: config(class_weights=())])
def test_a_setting_without_effect_is_refused_when_the_config_is_made(make):
    with pytest.raises(ConfigError, match="leave it out"):
        make()


def test_scalar_labels_of_one_output_and_integer_classes_in_a_column_still_train():
    fine_tune(model(1, "sigmoid"), data(y=Y % 2), config(loss="binary_crossentropy", class_weights=(1.0, 2.0)))
    fine_tune(model(), data(y=Y[:, None]), config())


class Absolute(tf_keras.losses.Loss):
    """A loss of a user's, registered nowhere."""

    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(tf.cast(y_true, y_pred.dtype) - y_pred), axis=-1)


def spread(y_true, y_pred):
    return tf.reduce_max(y_pred) - tf.reduce_min(y_pred)


@pytest.mark.parametrize("named", [None, "mean_squared_error"])
def test_a_loss_and_metric_of_the_users_own_need_no_registration(named):
    own = model(1, None)
    own.compile("sgd", Absolute(), metrics=[spread])
    history = fine_tune(own, data(y=Y[:, None].astype(np.float32)), config(loss=named))
    features, errors = X, own.predict(X, verbose=0) - Y[:, None]
    assert "spread" in history.history
    assert own.evaluate(features, Y[:, None].astype(np.float32), verbose=0)[0] == pytest.approx(
        np.mean(np.abs(errors)) if named is None else np.mean(errors**2), rel=1e-4
    )

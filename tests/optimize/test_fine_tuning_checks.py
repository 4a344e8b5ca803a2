"""What doesn't fit is refused before training, in one line that names it."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.distillation import distill
from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    ClusteringConfig,
    ConfigError,
    DistillationConfig,
    EarlyStopping,
    EdgeError,
    Filters,
    FineTuningConfig,
    LowRankConfig,
    PruningConfig,
    QatConfig,
    Regularization,
)
from tfx_edge.schemas.augmentation import ImageAugmentation, SignalAugmentation, TextAugmentation
from tfx_edge.schemas.training import BatchNormalization

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
        ((X, Y), {}, r"tuple; expected a tf.data.Dataset.*from_tensor_slices\(\(features, labels\)\)"),
        (data(y=Y + 0.5), {}, "label 'y': the value 0.5 under loss sparse_categorical_crossentropy; expected classes as whole numbers"),
        (data(y=tf.one_hot(Y, 4) * 2), {"loss": "categorical_crossentropy"}, "label 'y': the value 2 .*expected 0 to 1"),
        (data(), {"from_logits": True}, "from_logits is True, but the activation of output 'dense.*softmax.*set from_logits=False"),
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


@pytest.mark.parametrize(
    "make",
    [
        Regularization,
        BatchNormalization,
        lambda: config(class_weights=(0.0, 0.0)),
        lambda: config(class_weights=()),
        lambda: config(loss=None, from_logits=True),
        lambda: config(loss="hinge", from_logits=True),
        lambda: config(loss=None, output_losses={"a": "huber", "b": "hinge"}, from_logits=True),
        lambda: config(huber_delta=2.0),
        lambda: DistillationConfig(feature_weight=2.0, fine_tuning=config()),
        lambda: ImageAugmentation(feature="x"),
        lambda: TextAugmentation(feature="x"),
        lambda: SignalAugmentation(feature="x"),
    ],
)
def test_a_setting_without_effect_is_refused_when_the_config_is_made(make):
    with pytest.raises(ConfigError, match="leave it out"):
        make()


@pytest.mark.parametrize("wrap", [lambda layer: layer, tf_keras.layers.TimeDistributed], ids=["bare", "in a wrapper"])
def test_logits_are_not_taken_for_probabilities(wrap):
    inputs = tf_keras.Input((2, 4), name="x")
    logits = tf_keras.Model(inputs, tf_keras.layers.Dropout(0.1)(wrap(tf_keras.layers.Dense(4, name="raw"))(inputs)))
    examples = data(X.reshape(40, 2, 4), np.stack([Y, Y], 1))
    with pytest.raises(EdgeError, match="is linear, which gives logits; set from_logits=True"):
        fine_tune(logits, examples, config())
    fine_tune(logits, examples, config(from_logits=True))


def test_whole_numbers_as_floats_are_classes_and_soft_labels_are_shares():
    fine_tune(model(), data(y=Y.astype(np.float32)), config())
    fine_tune(model(1, "sigmoid"), data(y=Y / 4), config(loss="binary_crossentropy"))


@pytest.mark.parametrize("examples", [(X, Y), ({"x": X}, Y), None, [1]], ids=["arrays", "features by name", "none", "list"])
def test_every_technique_says_how_to_make_a_dataset(examples):
    tuning = config()
    for run in (
        lambda d, v: prune(model(), d, PruningConfig(fine_tuning=tuning), validation=v),
        lambda d, v: prune(model(), d, PruningConfig(granularity=Filters(), fine_tuning=tuning), validation=v),
        lambda d, v: cluster(model(), d, ClusteringConfig(clusters={"*": 4}, fine_tuning=tuning), validation=v),
        lambda d, v: factorize(model(), d, LowRankConfig(fine_tuning=tuning), validation=v),
        lambda d, v: distill(model(), d, DistillationConfig(fine_tuning=tuning), validation=v),
        lambda d, v: train_quantized(model(), d, QatConfig(fine_tuning=tuning), validation=v),
        lambda d, v: fine_tune(model(), d, tuning, validation=v),
    ):
        with pytest.raises(EdgeError, match="the training examples are a .*from_tensor_slices"):
            run(examples, None)
        if examples is not None:
            with pytest.raises(EdgeError, match="the validation examples are a .*from_tensor_slices"):
                run(data(), examples)


def test_validation_examples_that_do_not_fit_are_told_from_those_to_train_on():
    with pytest.raises(EdgeError, match="the validation examples: no feature 'x'"):
        fine_tune(model(), data(), config(), validation=data().map(lambda features, label: ({"z": features["x"]}, label)))


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

"""What holds while a model is trained: penalties, dropout, BatchNorm, class weights, stopping, phases."""

import io

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from rich.console import Console
from tf_keras import layers

from tfx_edge.optimize.fine_tuning import count_steps, fine_tune, layers_in_training
from tfx_edge.optimize.fine_tuning.order import hold_out
from tfx_edge.optimize.fine_tuning.progress import ProgressBar
from tfx_edge.schemas import BatchNormalization, EarlyStopping, EdgeError, FineTuningConfig, Phase, Regularization, Sgd

X = np.random.default_rng(0).normal(2.0, 3.0, size=(100, 4)).astype(np.float32)
Y = (np.arange(100) % 10 == 0).astype(np.int64) + 2 * (np.arange(100) % 4 == 1)


def config(**settings):
    return FineTuningConfig(**{"label_key": "y", "epochs": 1, "batch_size": 100, **settings})


def data(x=X, y=Y):
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y))


def network(dropout=None, norm=False, seed=1):
    tf_keras.utils.set_random_seed(seed)
    inputs = layers.Input((4,), name="x")
    hidden = layers.BatchNormalization(momentum=0.99, name="norm")(inputs) if norm else inputs
    hidden = layers.Dense(8, "relu", name="hidden")(hidden)
    hidden = hidden if dropout is None else layers.Dropout(dropout, name="drop")(hidden)
    model = tf_keras.Model(inputs, layers.Dense(4, "softmax", name="head")(hidden))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def vector(model):
    return np.concatenate([w.ravel() for w in model.get_weights()])


def test_l1_and_l2_add_the_kernels_penalty_to_the_loss_and_leave_nothing_behind():
    plain, penalized = network(), network()
    kernels = [w for w in plain.get_weights() if w.ndim == 2]
    expected = sum(0.1 * np.abs(k).sum() + 0.2 * np.square(k).sum() for k in kernels)
    settings = config(regularization=Regularization(l1=0.1, l2=0.2))
    losses = [fine_tune(m, data(), c).history["loss"][0] for m, c in ((plain, config()), (penalized, settings))]
    assert losses[1] - losses[0] == pytest.approx(expected, rel=1e-4)
    assert penalized.losses == []
    assert penalized.evaluate(X, Y, verbose=0) == pytest.approx(
        -np.log(penalized(X).numpy()[np.arange(100), Y]).mean(), rel=1e-4
    )  # no penalty in what was traced
    assert layers_in_training(penalized, settings).penalized == ("hidden/kernel", "head/kernel")


def test_dropout_takes_another_rate_while_training_and_then_its_own_again():
    without, given, own = network(), network(dropout=0.5), network(dropout=0.5)
    rate_0 = config(epochs=3, regularization=Regularization(dropout=0.0))
    fine_tune(without, data(), config(epochs=3))
    fine_tune(given, data(), rate_0)
    fine_tune(own, data(), config(epochs=3))
    np.testing.assert_array_equal(vector(given), vector(without))
    assert np.abs(vector(own) - vector(without)).max() > 1e-4
    assert given.get_layer("drop").rate == 0.5
    assert layers_in_training(given, rate_0).dropout == ("drop",)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"regularization": Regularization(dropout=0.1)}, "regularization.dropout.*no dropout layers"),
        ({"batch_normalization": BatchNormalization(recalibrate=True)}, "no trainable BatchNormalization"),
    ],
)
def test_a_setting_that_reaches_no_layer_is_an_error(settings, text):
    with pytest.raises(EdgeError, match=text):
        fine_tune(network(), data(), config(**settings))


def test_recalibration_gives_the_statistics_of_the_data():
    model = network(norm=True)
    norm = BatchNormalization(recalibrate=True)
    fine_tune(model, data(), config(epochs=2, batch_size=30, batch_normalization=norm))
    layer = model.get_layer("norm")
    batches = [X[i : i + 30] for i in range(0, 100, 30)]
    np.testing.assert_allclose(layer.moving_mean.numpy(), X.mean(0), rtol=1e-4)
    expected = np.average([b.var(0) for b in batches], axis=0, weights=[len(b) for b in batches])
    np.testing.assert_allclose(layer.moving_variance.numpy(), expected, rtol=1e-3)
    assert layer.momentum == 0.99


def test_the_momentum_while_training_is_the_one_asked_for():
    model = network(norm=True)
    fine_tune(model, data(), config(batch_normalization=BatchNormalization(momentum=0.25)))
    np.testing.assert_allclose(model.get_layer("norm").moving_mean.numpy(), 0.75 * X.mean(0), rtol=1e-4)
    assert model.get_layer("norm").momentum == 0.99


@pytest.mark.parametrize("labels", [Y, np.eye(4, dtype=np.float32)[Y]])
def test_balanced_classes_count_the_same_together(labels):
    model = network()
    model.compile("sgd", "sparse_categorical_crossentropy" if labels.ndim == 1 else "categorical_crossentropy")
    each = -np.log(model(X).numpy()[np.arange(100), Y])
    expected = np.mean([each[c == Y].mean() for c in np.unique(Y)])
    history = fine_tune(model, data(y=labels), config(class_weights="balanced")).history
    assert history["loss"][0] == pytest.approx(expected, rel=1e-4)


def test_given_class_weights_multiply_the_loss_of_their_class():
    model = network()
    each = -np.log(model(X).numpy()[np.arange(100), Y])
    weights = (1.0, 0.0, 3.0, 2.0)
    history = fine_tune(model, data(), config(class_weights=weights)).history
    assert history["loss"][0] == pytest.approx(np.mean(each * [weights[y] for y in Y]), rel=1e-4)


def test_balanced_weights_for_a_number_to_regress_are_refused():
    with pytest.raises(EdgeError, match=r"label 'y': the value 1.5 under loss sparse_categorical_crossentropy"):
        fine_tune(network(), data(y=(Y + 0.5).astype(np.float32)), config(class_weights="balanced"))


def test_training_stops_when_validation_gets_worse_and_the_best_weights_come_back():
    against = data(y=(Y + 1) % 4)  # the better the training, the worse this
    stopping = EarlyStopping(patience=2)
    settings = {"batch_size": 10, "learning_rate": 0.05, "optimizer": Sgd()}
    stopped, one_epoch, last = network(), network(), network()
    history = fine_tune(stopped, data(), config(epochs=9, early_stopping=stopping, **settings), validation=against)
    fine_tune(one_epoch, data(), config(epochs=1, **settings))
    fine_tune(last, data(), config(epochs=9, early_stopping=EarlyStopping(patience=2, restore_best=False), **settings), validation=against)
    assert len(history.history["val_loss"]) == 3 and history.history["val_loss"][0] < history.history["val_loss"][2]
    np.testing.assert_array_equal(vector(stopped), vector(one_epoch))
    assert np.abs(vector(last) - vector(one_epoch)).max() > 1e-3


def test_the_patience_goes_on_over_phases():
    phases = tuple(Phase(share=0.25, batch_size=size) for size in (10, 20, 25, 50))
    settings = config(epochs=4, phases=phases, early_stopping=EarlyStopping(patience=2), learning_rate=0.05, optimizer=Sgd())
    history = fine_tune(network(), data(), settings, validation=data(y=(Y + 1) % 4))
    assert len(history.history["loss"]) == 3


def test_a_figure_that_isnt_there_cant_be_monitored():
    with pytest.raises(EdgeError, match=r"monitor 'val_f1'.*has loss, val_loss"):
        fine_tune(network(), data(), config(early_stopping=EarlyStopping(monitor="val_f1")))


def test_without_a_validation_split_each_example_is_either_trained_on_or_looked_at():
    settings = config(early_stopping=EarlyStopping(holdout=7), batch_size=10)
    numbered = data(x=np.arange(100, dtype=np.float32)[:, None])
    training, held = (sorted(int(f["x"][0]) for f, _ in part) for part in hold_out(numbered, settings))
    assert held == list(range(6, 100, 7)) and sorted(training + held) == list(range(100))
    seen = []
    count = tf_keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    history = fine_tune(network(), data(), settings, callbacks=[count]).history
    assert len(seen) == count_steps(data(), settings) == 9 and "val_loss" in history


def test_phases_share_the_epochs_and_have_batch_sizes_of_their_own():
    seen = []
    count = tf_keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    settings = config(epochs=5, phases=(Phase(share=0.4, batch_size=50), Phase(share=0.6, batch_size=20)))
    history = fine_tune(network(), data(), settings, callbacks=[count])
    assert seen == [0, 1] * 2 + [0, 1, 2, 3, 4] * 3 and len(seen) == count_steps(data(), settings)
    assert history.epoch == list(range(5)) and len(history.history["loss"]) == 5


def test_tensorboard_logs_have_the_loss_of_each_epoch(tmp_path):
    history = fine_tune(network(), data(), config(epochs=3, tensorboard_dir=str(tmp_path))).history
    (path,) = tmp_path.rglob("events.out.*")
    events = [v for record in tf.data.TFRecordDataset(str(path)) for v in tf.compat.v1.Event.FromString(record.numpy()).summary.value]
    logged = [float(tf.make_ndarray(v.tensor)) for v in events if v.tag == "epoch_loss"]
    np.testing.assert_allclose(logged, history["loss"], rtol=1e-6)


def test_progress_is_silent_unless_asked_for_and_plain_without_a_terminal(capfd):
    fine_tune(network(), data(), config(epochs=2))
    assert capfd.readouterr().err == ""
    fine_tune(network(), data(), config(epochs=2, progress=True))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2 and "epoch 2 of 2, loss" in lines[1] and "\x1b" not in lines[1]


def test_on_a_terminal_progress_is_a_bar():
    text = io.StringIO()
    bar = ProgressBar(4, "training", Console(file=text, force_terminal=True, width=100))
    bar.start()
    bar.on_epoch_end(2, {"loss": 0.5})
    bar.stop()
    assert "━" in text.getvalue() and "3/4" in text.getvalue() and "loss 0.5" in text.getvalue()

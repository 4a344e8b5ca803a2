"""A training that is killed goes on where it was, in another process."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.schemas import EdgeError, FineTuningConfig

PROGRAM = """
import os, signal, sys
import numpy as np, tensorflow as tf, tf_keras
from tf_keras import layers
from tfx_edge.optimize.fine_tuning import fine_tune
from tfx_edge.schemas import CosineRate, EarlyStopping, FineTuningConfig, Phase, SignalAugmentation

folder, result, kill = sys.argv[1:]
x = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
tf_keras.utils.set_random_seed(1)
inputs = layers.Input((6,), name="x")
hidden = layers.Dropout(0.3)(layers.BatchNormalization()(layers.Dense(8, "relu")(inputs)))
model = tf_keras.Model(inputs, layers.Dense(3, "softmax")(hidden))
model.compile("sgd", "sparse_categorical_crossentropy")
config = FineTuningConfig(
    label_key="y", epochs=6, phases=(Phase(share=0.5, batch_size=10), Phase(share=0.5, batch_size=20)), learning_rate=0.05,
    schedule=CosineRate(), early_stopping=EarlyStopping(patience=6), augmentation=(SignalAugmentation(feature="x", noise=0.1),),
    checkpoint_dir=folder)
class Killer(tf_keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
    def on_train_batch_end(self, step, logs=None):
        if kill and self.epoch == 4 and step == 1:
            os.kill(os.getpid(), signal.SIGKILL)
history = fine_tune(model, tf.data.Dataset.from_tensor_slices(({"x": x}, (x[:, 0] > 0).astype(int))), config, callbacks=[Killer()])
np.savez(result, *model.get_weights(), loss=history.history["loss"], epochs=history.epoch)
"""


def run(tmp_path, folder, name, kill=""):
    arguments = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path / folder), str(tmp_path / name), kill]
    return subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_weights_of_an_unbroken_training(tmp_path):
    assert run(tmp_path, "one", "unbroken.npz").returncode == 0
    assert run(tmp_path, "two", "never.npz", "kill").returncode == -signal.SIGKILL
    assert list((tmp_path / "two").glob("*.index")) and not (tmp_path / "never.npz").exists()
    resumed = run(tmp_path, "two", "resumed.npz")
    assert resumed.returncode == 0, resumed.stderr
    expected, got = (dict(np.load(tmp_path / f"{name}.npz")) for name in ("unbroken", "resumed"))
    assert expected.keys() == got.keys() and expected["epochs"].tolist() == list(range(6))
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)
    assert not list((tmp_path / "two").iterdir())  # what is finished isn't resumed


def tiny(seed=0):
    tf_keras.utils.set_random_seed(seed)
    model = tf_keras.Model(inputs := tf_keras.Input((1,), name="x"), tf_keras.layers.Dense(1)(inputs))
    return model, tf.data.Dataset.from_tensor_slices(({"x": np.ones((8, 1), np.float32)}, np.ones(8, np.float32)))


class Stop(tf_keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def stopped(config):
    """Leaves the state of a training that an error ended after its first epoch."""
    with pytest.raises(KeyboardInterrupt):
        fine_tune(*tiny(), config, callbacks=[Stop()])


def test_the_state_of_another_training_or_a_broken_one_is_refused(tmp_path):
    config = FineTuningConfig(label_key="y", loss="mean_squared_error", checkpoint_dir=str(tmp_path))
    stopped(config)
    other = config.model_copy(update={"learning_rate": 0.5})
    with pytest.raises(EdgeError, match="holds the state of another training"):
        fine_tune(*tiny(), other, callbacks=[Stop()])
    for path in tmp_path.glob("*.data-*"):
        path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(EdgeError, match=r"can't be read.*delete it") as error:
        fine_tune(*tiny(), config, callbacks=[Stop()])
    assert "\n" not in str(error.value)


def test_the_state_of_a_model_with_other_weights_or_of_other_data_is_refused(tmp_path):
    config = FineTuningConfig(label_key="y", loss="mean_squared_error", checkpoint_dir=str(tmp_path))
    stopped(config)
    model, data = tiny()
    for other, examples, callbacks in (
        (tiny(seed=1)[0], data, [Stop()]),
        (model, data.take(7), [Stop()]),
        (model, data.map(lambda features, label: (features, label + 1)), [Stop()]),
        (model, data, []),  # without the callback that `stopped` has
    ):
        before = other.get_weights()
        with pytest.raises(EdgeError, match="holds the state of another training"):
            fine_tune(other, examples, config, callbacks=callbacks)
        for old, new in zip(before, other.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)

"""Going on after a kill: the whole state of a training after each epoch, in one folder."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.fine_tuning.stopping import StopEarly
from tfx_edge.schemas import EdgeError, FineTuningConfig

_PREFIX = "fine_tuning"


class TrainingHistory(tf_keras.callbacks.History):
    """Keras' own over several fits."""

    def __init__(self) -> None:
        """Starts empty."""
        super().__init__()
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Mapping[str, float] | None = None) -> None:
        """Keras forgets the epochs here."""


class _State(tf.train.experimental.PythonState):
    """What isn't a variable: epochs done, history, early stopping, and whose training it is."""

    def __init__(self, owner: str, history: TrainingHistory, stopping: StopEarly | None) -> None:
        self.owner, self.done, self._history, self._stopping = owner, 0, history, stopping

    def serialize(self) -> str:
        stopping = base64.b64encode(self._stopping.to_bytes()).decode() if self._stopping else None
        return json.dumps(
            {"owner": self.owner, "done": self.done, "epoch": self._history.epoch, "history": self._history.history, "stopping": stopping},
            default=float,
        )

    def deserialize(self, string_value: bytes) -> None:
        state = json.loads(string_value)
        self.owner, self.done = state["owner"], state["done"]
        self._history.epoch, self._history.history = state["epoch"], state["history"]
        if self._stopping and state["stopping"]:
            self._stopping.from_bytes(base64.b64decode(state["stopping"]))


class Checkpoint(tf_keras.callbacks.Callback):
    """Saves after each epoch; the last in the list of callbacks, so that it sees what the others did."""

    def __init__(
        self,
        folder: str,
        model: tf_keras.Model,
        config: FineTuningConfig,
        history: TrainingHistory,
        stopping: StopEarly | None,
        whose: Sequence[str] = (),
    ) -> None:
        """Takes `config.checkpoint_dir`, a compiled model before training, all else that a training's state is in, and `whose` it is."""
        super().__init__()
        self._folder = folder
        self._owner = json.dumps([config.model_dump(mode="json", exclude={"progress", "tensorboard_dir"}), _digest(model), *whose])
        self._state = _State(self._owner, history, stopping)
        model.optimizer.build(model.trainable_variables)  # its variables take part in the checkpoint
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, state=self._state)
        self._manager = tf.train.CheckpointManager(self._checkpoint, self._folder, max_to_keep=1, checkpoint_name=_PREFIX)

    def restore(self) -> int:
        """Takes up the state in the folder, if there is one.

        Returns:
            How many epochs are done.

        Raises:
            EdgeError: the folder holds the state of another training, or can't be read.
        """
        latest = self._manager.latest_checkpoint
        if latest is None:
            return 0
        unreadable = f"FineTuningConfig.checkpoint_dir {self._folder!r} can't be read"
        try:
            saved = json.loads(tf.train.load_checkpoint(latest).get_tensor("state/.ATTRIBUTES/py_state"))
        except (tf.errors.OpError, ValueError, IndexError, RuntimeError) as error:
            raise EdgeError(f"{unreadable}: {one_line(error)}; delete it to start anew") from error
        if saved["owner"] != self._owner:
            raise EdgeError(
                f"FineTuningConfig.checkpoint_dir {self._folder!r} holds the state of another training (another config, model, "
                "technique or data); delete it, or name a folder of this training's own"
            )
        try:
            self._checkpoint.restore(latest).assert_existing_objects_matched()
        except (tf.errors.OpError, ValueError, IndexError, AssertionError) as error:
            raise EdgeError(f"{unreadable}: {one_line(error)}; delete it to start anew") from error
        return self._state.done

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Saves; TensorFlow renames the finished checkpoint into place."""
        self._state.done = epoch + 1
        self._manager.save(checkpoint_number=epoch + 1)

    def finish(self) -> None:
        """Deletes the state of a training that ended well, so that the next in this folder starts anew."""
        for path in [*tf.io.gfile.glob(f"{self._folder}/{_PREFIX}-*"), f"{self._folder}/checkpoint"]:
            if tf.io.gfile.exists(path):
                tf.io.gfile.remove(path)


def whose_training(training: tf.data.Dataset, callbacks: Sequence[tf_keras.callbacks.Callback]) -> list[str]:
    """What tells trainings of one model and config apart: the technique's callbacks, the data's kind, number and first example."""
    first = hashlib.sha256()
    for example in training.take(1):
        for value in tf.nest.flatten(example, expand_composites=True):
            first.update(value.numpy() if value.dtype == tf.string and not value.shape.rank else value.numpy().tobytes())
    names = ",".join(type(callback).__qualname__ for callback in callbacks)
    return [names, repr(training.element_spec), str(int(training.cardinality())), first.hexdigest()]


def _digest(model: tf_keras.Model) -> str:
    """Of the weights and their shapes; not the names, which Keras numbers as layers are made."""
    digest = hashlib.sha256()
    for value in model.get_weights():
        digest.update(repr((value.shape, value.dtype)).encode() + value.tobytes())
    return digest.hexdigest()

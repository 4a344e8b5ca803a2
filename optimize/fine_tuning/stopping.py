"""What ends a training before its last epoch."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import tf_keras

from tfx_edge.schemas import EdgeError, FineTuningConfig
from tfx_edge.schemas.training import EarlyStopping


class StopEarly(tf_keras.callbacks.EarlyStopping):
    """Keras' own over several fits, and with a state that outlives a kill."""

    def __init__(self, stopping: EarlyStopping, epochs: int) -> None:
        """Takes the settings and the number of all epochs."""
        super().__init__(
            monitor=stopping.monitor,
            min_delta=stopping.min_delta,
            patience=stopping.patience,
            restore_best_weights=stopping.restore_best,
            start_from_epoch=round(stopping.start * epochs),
        )
        super().on_train_begin()

    def on_train_begin(self, logs: Mapping[str, float] | None = None) -> None:
        """Keras forgets here, which would be at the start of each phase."""

    def on_train_end(self, logs: Mapping[str, float] | None = None) -> None:
        """Keras restores here, which would be at the end of each phase; `restore` does."""

    def get_monitor_value(self, logs: Mapping[str, float]) -> float | None:
        """The monitored figure; Keras would warn and never stop where there is none."""
        if self.monitor not in logs:
            raise EdgeError(
                f"EarlyStopping.monitor {self.monitor!r}: not in the training's history, which has {', '.join(sorted(logs))}; "
                "take one of these"
            )
        return logs[self.monitor]

    def restore(self) -> None:
        """Gives the model its best weights, where that is asked for."""
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)

    def to_bytes(self) -> bytes:
        """The state as an .npz file."""
        file = io.BytesIO()
        weights = {f"w{i:06d}": w for i, w in enumerate(self.best_weights or [])}
        np.savez(file, numbers=np.array([self.best, self.wait, self.best_epoch, self.stopped_epoch], np.float64), **weights)
        return file.getvalue()

    def from_bytes(self, data: bytes) -> None:
        """Takes up a state that `to_bytes` wrote."""
        with np.load(io.BytesIO(data)) as arrays:
            self.best, wait, best_epoch, stopped_epoch = arrays["numbers"].tolist()
            self.best_weights = [arrays[name] for name in sorted(set(arrays.files) - {"numbers"})] or None
        self.wait, self.best_epoch, self.stopped_epoch = int(wait), int(best_epoch), int(stopped_epoch)


class StopAtInvalidLoss(tf_keras.callbacks.Callback):
    """Ends training with an error at the first step whose loss is no number."""

    def __init__(self, config: FineTuningConfig) -> None:
        """Takes the config for the error's text."""
        super().__init__()
        self._config = config
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keeps the epoch's number."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        """Looks at the loss so far."""
        loss = float((logs or {}).get("loss", 0.0))
        if not -float("inf") < loss < float("inf"):
            raise EdgeError(
                f"the loss became {loss} in epoch {self._epoch + 1}, step {batch + 1}; expected a finite number; lower "
                f"FineTuningConfig.learning_rate ({self._config.learning_rate}), or look for NaN in the features and label "
                f"{self._config.label_key!r}"
            )

"""How far a training is, on standard error."""

from collections.abc import Mapping

import tf_keras
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class ProgressBar(tf_keras.callbacks.Callback):
    """A bar over the epochs on a terminal, a line an epoch elsewhere."""

    def __init__(self, epochs: int, title: str, console: Console | None = None) -> None:
        """Takes the number of all epochs and what to call the training."""
        super().__init__()
        self._epochs, self._title = epochs, title
        self._console = console or Console(stderr=True)
        self._progress: Progress | None = None

    def start(self) -> None:
        """Shows the bar."""
        if self._console.is_terminal:
            text, figures = TextColumn("{task.description}"), TextColumn("{task.fields[figures]}")
            columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), figures)
            self._progress = Progress(*columns, console=self._console)
            self._progress.start()
            self._task = self._progress.add_task(self._title, total=self._epochs, figures="")

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Moves on."""
        figures = ", ".join(f"{name} {value:.4g}" for name, value in (logs or {}).items())
        if self._progress is None:
            line = f"{self._title}: epoch {epoch + 1} of {self._epochs}, {figures}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            self._progress.update(self._task, completed=epoch + 1, figures=figures)

    def stop(self) -> None:
        """Leaves the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()

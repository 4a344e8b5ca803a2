"""`run.json`, kept whole while the run goes on."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfx_edge.schemas import PackageRun, TaskRecord

_ENDED = {"SUCCEEDED", "CACHED", "SKIPPED", "FAILED", "CANCELED"}

Report = Callable[[str, TaskRecord], None]


class Record:
    """Holds the record and writes it after every change, under another name first.

    Args:
        path: The file.
        run: The record as the run starts.
        report: Called with a task's name and record when it has ended.
    """

    def __init__(self, path: Path, run: PackageRun, report: Report) -> None:
        self.path = path
        self.run = run
        self._report = report
        self._start = time.monotonic()
        self._starts: dict[str, float] = {}
        self._write()

    def update(self, task: str, **changes: Any) -> None:
        """Changes a task's record."""
        now = time.monotonic()
        before = self.run.tasks[task]
        state = changes.get("state", before.state)
        if state == "RUNNING":
            self._starts.setdefault(task, now)
        if state in _ENDED and task in self._starts:
            changes["seconds"] = round(now - self._starts[task], 3)
        after = before.model_copy(update=changes)
        self.run = self.run.model_copy(update={"tasks": {**self.run.tasks, task: after}})
        self._write()
        if state in _ENDED and before.state not in _ENDED:
            self._report(task, after)

    def finish(self, state: str) -> None:
        """Ends the run; whatever hadn't ended was cancelled."""
        for task, record in self.run.tasks.items():
            if record.state not in _ENDED:
                self.update(task, state="CANCELED")
        self.run = self.run.model_copy(update={"state": state, "seconds": round(time.monotonic() - self._start, 3)})
        self._write()

    def _write(self) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(self.run.to_json())
        os.replace(part, self.path)

"""The peak, what held it, and what grew, by the lines of Python that allocated it."""

import contextlib
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tfx_edge.profiling.resident import resident_bytes

FILE = "memory.txt"

_MIB = 2**20
_LINES = 25
_LEAST = 5_000
"""Bytes: 0.005 MiB and less tell nothing."""
_FRAMES = 4
"""Of each allocation's stack: enough to get out of NumPy, which is never what somebody looks for."""
_LOOKS_EVERY_SECONDS = 0.05
_STEP = 1.1
"""A snapshot costs time, so the next one waits for a peak that is a tenth higher."""
_NOT_BLAMED = ("/numpy/", "/contextlib.py")
_TOOLS = ("/pyinstrument/", "/line_profiler/", tracemalloc.__file__, "/tfx_edge/profiling/", str(Path(__file__).parent))


class _Held(NamedTuple):
    """Bytes and blocks by the line that allocated them."""

    sizes: Counter[str]
    blocks: Counter[str]


@contextlib.contextmanager
def recorded(folder: Path) -> Iterator[None]:
    """Writes what Python and NumPy allocated inside, in all threads. TensorFlow's and LiteRT's own memory shows in the process's alone."""
    there = tracemalloc.is_tracing()
    if not there:
        tracemalloc.start(_FRAMES)
    resident = resident_bytes()
    before = _held(tracemalloc.take_snapshot())
    tracemalloc.reset_peak()
    watch = _Watch()
    watch.start()
    try:
        yield
    finally:
        watch.done.set()
        watch.join()
        current, peak = tracemalloc.get_traced_memory()
        last = tracemalloc.take_snapshot()
        if not there:
            tracemalloc.stop()
        after = _held(last)
        totals = {"peak": peak, "at the end": current}, {"before": resident, "after": resident_bytes()}
        highest = _held(watch.highest) if watch.highest is not None and watch.seen > current else after
        (folder / FILE).write_text(_report(*totals, highest, before, after), encoding="utf-8")


class _Watch(threading.Thread):
    """Takes a snapshot whenever memory is clearly higher than at the one before."""

    def __init__(self) -> None:
        super().__init__(name="tfx-edge-memory", daemon=True)
        self.done = threading.Event()
        self.highest: tracemalloc.Snapshot | None = None
        self.seen = 0

    def run(self) -> None:
        while not self.done.wait(_LOOKS_EVERY_SECONDS):
            current, _ = tracemalloc.get_traced_memory()
            if current > max(self.seen * _STEP, self.seen + _MIB):
                self.highest, self.seen = tracemalloc.take_snapshot(), current


def _held(snapshot: tracemalloc.Snapshot) -> _Held:
    held = _Held(Counter(), Counter())
    for trace in snapshot.traces:
        frames = list(reversed(trace.traceback))  # innermost first
        if any(tool in frames[0].filename for tool in _TOOLS):
            continue
        blamed = next((frame for frame in frames if not any(part in frame.filename for part in _NOT_BLAMED)), frames[0])
        line = f"{blamed.filename}:{blamed.lineno}"
        held.sizes[line] += trace.size
        held.blocks[line] += 1
    return held


def _report(python: dict[str, int], process: dict[str, int], highest: _Held, before: _Held, after: _Held) -> str:
    held = [(line, size) for line, size in highest.sizes.most_common(_LINES) if size > _LEAST]
    most = [f"{size / _MIB:9.2f} MiB in {highest.blocks[line]:>7} blocks  {line}" for line, size in held]
    grown = Counter({line: size - before.sizes[line] for line, size in after.sizes.items()}).most_common(_LINES)
    blocks = {line: after.blocks[line] - before.blocks[line] for line, _ in grown}
    grew = [f"{size / _MIB:+9.2f} MiB in {blocks[line]:>+7} blocks  {line}" for line, size in grown if size > _LEAST]
    total = f"{sum(highest.sizes.values()) / _MIB:.2f} MiB"
    return "".join(
        (
            _part("What Python and NumPy held", [f"{size / _MIB:9.2f} MiB  {what}" for what, size in python.items()]),
            _part("The whole process, with TensorFlow and LiteRT", [f"{size / _MIB:9.2f} MiB  {what}" for what, size in process.items()]),
            _part(f"What held most when it was highest (looked 20 times a second; {total} then)", most),
            _part("What grew from beginning to end", grew),
        )
    )


def _part(title: str, lines: Sequence[str]) -> str:
    return "\n  ".join((f"{title}:", *(lines or ("nothing",)))) + "\n\n"

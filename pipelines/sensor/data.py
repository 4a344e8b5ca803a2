"""Made-up accelerometer signals: resting, walking, shaking; three axes, 64 samples a window."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tfx_edge.pipelines.example_files import Row, split_rows, write_splits

LABEL = "activity"
STEPS, AXES = 64, 3
_ACTIVITIES = ((0.05, 0.0), (0.6, 2.0), (1.6, 6.0))  # amplitude in g, frequency in Hz
_RATE = 25  # samples a second


def rows(count: int = 1200, seed: int = 0) -> list[Row]:
    """Windows `[64 * 3]` in g, axis last, and the activity's number."""
    rng = np.random.default_rng(seed)
    return [{"window": _window(rng, i % 3), LABEL: i % 3} for i in range(count)]


def _window(rng: np.random.Generator, activity: int) -> NDArray[np.float32]:
    amplitude, frequency = _ACTIVITIES[activity]
    time = np.arange(STEPS)[:, None] / _RATE
    gravity = rng.normal(size=AXES)
    swing = amplitude * rng.uniform(0.6, 1.4) * rng.normal(size=AXES)
    wave = np.sin(2 * np.pi * frequency * rng.uniform(0.85, 1.15) * time + rng.uniform(0, 2 * np.pi, size=AXES))
    signal = gravity / np.linalg.norm(gravity) + swing * wave + rng.normal(0, 0.08, size=(STEPS, AXES))
    return np.asarray(signal, np.float32)


def write_examples(folder: Path) -> None:
    """Writes `train/` and `eval/` below a folder that isn't there yet."""
    if not folder.exists():
        write_splits(folder, split_rows(rows(), LABEL))

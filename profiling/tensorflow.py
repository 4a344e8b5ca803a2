"""TensorFlow's own profile: operators and their threads, for TensorBoard."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = "tensorflow"


@contextlib.contextmanager
def recorded(folder: Path) -> Iterator[None]:
    """Writes `plugins/profile/` as TensorBoard wants it; where the process hasn't TensorFlow, nothing."""
    if "tensorflow" not in sys.modules:
        yield
        return
    import tensorflow as tf

    tf.profiler.experimental.start(str(folder / FOLDER))
    try:
        yield
    finally:
        tf.profiler.experimental.stop()

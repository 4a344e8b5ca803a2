"""Keeps what TFX, TensorFlow and libraries in C++ write off the terminal."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def noise_to(log: Path) -> Iterator[TextIO]:
    """Sends standard output and error, what libraries in C++ write there too, to a file; gives the terminal's own stream."""
    sys.stdout.flush()
    sys.stderr.flush()
    streams = [os.dup(1), os.dup(2)]
    terminal = os.fdopen(os.dup(1), "w")
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield terminal
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, stream in enumerate(streams, start=1):
                os.dup2(stream, number)
                os.close(stream)
            terminal.close()

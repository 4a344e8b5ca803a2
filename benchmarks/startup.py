"""What it costs to start: the command line's help, and the data contracts, which everything imports."""

import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks.figure import Figure, ratio


def figures() -> Iterator[Figure]:
    """`tfx-edge --help` and `import tfx_edge.schemas`, against the libraries that they stand on."""
    yield ratio(
        "startup.help",
        _python("import sys; sys.argv = ['tfx-edge', '--help']; from tfx_edge.cli import cli; cli(standalone_mode=False)"),
        _python("import click, numpy, pydantic"),
        unit="x import click, numpy, pydantic",
        goal=2.5,
        better="lower",
    )
    yield ratio(
        "startup.schemas",
        _python("import tfx_edge.schemas"),
        _python("import numpy, pydantic"),
        unit="x import numpy, pydantic",
        goal=2.5,
        better="lower",
    )


def _python(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd="/")

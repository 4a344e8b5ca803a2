"""Which lines of the hot functions the time goes to."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

from tfx_edge.profiling.hot import hot_functions

FILE = "lines.txt"


@contextlib.contextmanager
def recorded(folder: Path) -> Iterator[None]:
    """Writes hits and milliseconds of each line of the hot functions that ran inside, those with most time last."""
    from line_profiler import LineProfiler

    profiler = LineProfiler()
    for function in hot_functions():
        profiler.add_function(function)
    profiler.enable_by_count()
    try:
        yield
    finally:
        profiler.disable_by_count()
        text = io.StringIO()
        profiler.print_stats(text, output_unit=1e-3, stripzeros=True, summarize=True, sort=True)
        (folder / FILE).write_text(text.getvalue(), encoding="utf-8")

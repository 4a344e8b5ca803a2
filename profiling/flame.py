"""Which calls the time goes to: pyinstrument looks at the stack a thousand times a second."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

FILE = "flame.html"

_FONTS = re.compile(r"https://fonts\.googleapis\.com/[^\"']*")
_NO_NETWORK = """<meta http-equiv="Content-Security-Policy" content="default-src 'unsafe-inline' data: blob:">"""


@contextlib.contextmanager
def recorded(folder: Path) -> Iterator[None]:
    """Writes the flame graph of what runs inside, in this thread, as a page that needs no network."""
    from pyinstrument import Profiler
    from pyinstrument.renderers import HTMLRenderer

    profiler = Profiler(async_mode="disabled")
    profiler.start()
    try:
        yield
    finally:
        session = profiler.stop()
        page = _FONTS.sub("data:text/css,", HTMLRenderer().render(session))
        (folder / FILE).write_text(page.replace("<head>", f"<head>{_NO_NETWORK}", 1), encoding="utf-8")

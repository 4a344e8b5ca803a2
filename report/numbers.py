"""Numbers as text."""

from tfx_edge.report.parts import Cell, Tone

NOTHING = "—"


def number(value: float | None, digits: int = 4, sign: bool = False) -> str:
    """A measured value; a dash where there is none.

    >>> number(0.98497), number(-0.0, sign=True), number(None), number(1234567.0), number(1e-7)
    ('0.9850', '0.0000', '—', '1,234,567', '1e-07')
    """
    if value is None:
        return NOTHING
    if value == 0:
        return f"{0:.{digits}f}"
    plus = "+" if sign else ""
    if abs(value) >= 10_000:
        return f"{value:{plus},.0f}"
    return f"{value:{plus}.{digits}f}" if abs(value) >= 10**-digits else f"{value:{plus}.2g}"


def size(count: float | None) -> str:
    """Bytes, as files are listed.

    >>> size(83138), size(999), size(None), size(5_000_000)
    ('83.1 kB', '999 B', '—', '5.00 MB')
    """
    if count is None:
        return NOTHING
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}" if count / factor >= 10 else f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"


def times(before: float | None, after: float | None) -> str:
    """How many times smaller something became; empty where that can't be told.

    >>> times(100, 25), times(100, 125), times(None, 5)
    ('4.0 times smaller', '1.25 times larger', '')
    """
    if not before or not after:
        return ""
    return f"{before / after:.1f} times smaller" if before >= after else f"{after / before:.2f} times larger"


def cell(value: float | None, digits: int = 4, sign: bool = False, tone: Tone = "") -> Cell:
    """A number that sorts as one."""
    return Cell(number(value, digits, sign), value, tone)


def text(value: object, tone: Tone = "") -> Cell:
    """A text that sorts as one."""
    shown = NOTHING if value is None or value == "" else shortened(str(value))
    return Cell(shown, None if shown == NOTHING else shown, tone)


def shortened(told: str, most: int = 300) -> str:
    """A text that may be of any length, as a page shows it.

    >>> shortened("abcdef", most=4)
    'abc…'
    """
    return told if len(told) <= most else f"{told[: most - 1]}…"

"""What a page is put together of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["", "good", "bad"]
Spec = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A value of a table.

    Attributes:
        text: what is shown.
        key: what rows are sorted by, where that isn't the text; None sorts last.
        tone: whether the value is good or bad news.
    """

    text: str
    key: float | str | None = None
    tone: Tone = ""


@dataclass(frozen=True)
class Table:
    """A table that sorts by its columns, and filters where it is long.

    Attributes:
        caption: what its rows are.
        columns: their names.
        rows: a cell for each column.
        numeric: columns of numbers, counted from 0.
        note: a line below it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()
    note: str = ""

    @property
    def filters(self) -> bool:
        """Whether there is enough to look for something."""
        return len(self.rows) > 5

    @property
    def has_news(self) -> bool:
        """Whether any row is bad news, so that one may ask for those alone."""
        return any(cell.tone == "bad" for row in self.rows for cell in row)


@dataclass(frozen=True)
class Chart:
    """A chart, and the same as a table.

    Attributes:
        title: what it shows.
        spec: Vega-Lite's.
        table: what is drawn.
        note: how to read it.
    """

    title: str
    spec: Spec
    table: Table
    note: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and values.

    Attributes:
        pairs: in their order.
        title: of them; empty for none.
    """

    pairs: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True)
class Lines:
    """Sentences that the tools wrote.

    Attributes:
        title: of them.
        lines: each on its own.
    """

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """One example on which the models disagree.

    Attributes:
        title: what float and edge model say.
        image: a data URI; None where no feature is an image.
        alt: what the image is.
        facts: about the example.
        predictions: of both models.
        flipped: the two decide otherwise.
    """

    title: str
    image: str | None
    alt: str
    facts: Facts
    predictions: Table
    flipped: bool


@dataclass(frozen=True)
class Cards:
    """Several examples."""

    cards: tuple[Card, ...]


Part = Table | Chart | Facts | Lines | Cards


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading.

    Attributes:
        anchor: its id within the model's or the page's.
        title: the heading.
        parts: in their order.
        absent: why something isn't there, a line each.
        intro: one sentence.
    """

    anchor: str
    title: str
    parts: tuple[Part, ...] = ()
    absent: tuple[str, ...] = ()
    intro: str = ""


def cut(rows: Sequence[Any], most: int, what: str) -> tuple[Sequence[Any], str]:
    """The first rows, and a line that says so where there were more.

    >>> cut([1, 2, 3], 2, "slices")
    ([1, 2], '2 of 3 slices; the others are in the JSON.')
    """
    return (rows, "") if len(rows) <= most else (rows[:most], f"{most:,} of {len(rows):,} {what}; the others are in the JSON.")

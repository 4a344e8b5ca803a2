"""The names of a model's classes."""

from collections.abc import Sequence
from pathlib import Path


def read_labels(path: str) -> tuple[str, ...]:
    """Reads a label file: UTF-8, a label a line, in the order of the output's positions.

    Raises:
        ValueError: it can't be read.
    """
    try:
        return tuple(Path(path).read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"the label file can't be read ({error}); give a local UTF-8 file with a label a line, or a tuple") from None


def checked_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels as they can stand in a label file.

    Raises:
        ValueError: one is empty, has several lines, or occurs twice.
    """
    places: dict[str, int] = {}
    for position, label in enumerate(labels):
        if not label.strip() or label.splitlines() != [label]:
            raise ValueError(f"label {position} is {label!r:.100}; give each a text of one line")
        if places.setdefault(label, position) != position:
            raise ValueError(f"label {label!r:.100} stands at {places[label]} and {position}; give each position a label of its own")
    return tuple(labels)

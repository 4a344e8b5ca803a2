"""What options of several commands have in common."""

import json
from glob import glob
from pathlib import Path
from typing import Any

import click

from tfx_edge.schemas import EdgeError

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")


def tell(as_json: bool, line: str, **facts: Any) -> None:
    """Says what was done: in a line for people, or with the same facts as a JSON object."""
    click.echo(json.dumps(facts, indent=2) if as_json else line)


def pairs(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Reads a repeatable option `NAME=VALUE`; a callback of click's.

    Raises:
        click.BadParameter: a value isn't of that form, or a name comes twice.
    """
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{value!r}: expected NAME=VALUE")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        found[name] = text
    return found


def example_files(values: tuple[str, ...]) -> tuple[Path, ...]:
    """The files that options name: each a file, a folder whose files are meant, or a pattern.

    Raises:
        EdgeError: a folder has no files.
    """
    found: list[Path] = []
    for value in values:
        place = Path(value)
        files = sorted(place.iterdir()) if place.is_dir() else sorted(map(Path, glob(value))) or [place]
        if not files:
            raise EdgeError(f"{value}: no files in it; name TFRecord files of tf.Examples")
        found += files
    return tuple(found)

"""What options of several commands have in common."""

import click


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

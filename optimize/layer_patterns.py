"""Shell patterns over layer names, by which every technique's config selects layers."""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from tfx_edge.schemas import EdgeError

_T = TypeVar("_T")

UNSELECTED = "no pattern in {} matches it"  # why a layer is left, by the config's field


def check_patterns(field: str, patterns: Iterable[str], names: Sequence[str], model: str) -> None:
    """Checks that each pattern matches a layer.

    Args:
        field: of the config, for the error.
        patterns: shell patterns.
        names: of the layers that may be selected.
        model: its name, for the error.

    Raises:
        EdgeError: a pattern matches none; the text lists the names.
    """
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise EdgeError(f"{field}: pattern {pattern!r} matches no layer of model {model!r}, which has {', '.join(names)}")


def is_selected(name: str, patterns: Iterable[str]) -> bool:
    """Whether any pattern matches a layer's name.

    >>> is_selected("conv_1", ("dense*", "conv*"))
    True
    """
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def first_match(name: str, values: Mapping[str, _T], otherwise: _T) -> _T:
    """The value of the first pattern that matches a layer's name.

    >>> first_match("conv_1", {"conv*": 32, "*": 16}, 0)
    32
    """
    return next((value for pattern, value in values.items() if fnmatch.fnmatchcase(name, pattern)), otherwise)

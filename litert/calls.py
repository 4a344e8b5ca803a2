"""The graphs that an operator of a flatbuffer runs: bodies and conditions of loops, branches, functions."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np


def calls(op: Any) -> Iterator[tuple[Any, str, Any]]:
    """The fields of an operator's options that hold graphs.

    Returns:
        The options, the field's name, and the number of a graph or several; a field that is negative holds none.
    """
    for options in (op.builtinOptions, op.builtinOptions2):
        for field, value in vars(options).items() if options is not None else ():
            if re.fullmatch(r"subgraph|\w*[sS]ubgraphInd(ex|ices)", field) and value is not None and not np.any(np.less(value, 0)):
                yield options, field, value


def called_graphs(op: Any) -> list[int]:
    """The numbers of the graphs that an operator runs."""
    return [int(number) for _, _, value in calls(op) for number in np.ravel(value)]

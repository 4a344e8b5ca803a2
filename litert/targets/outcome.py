"""What a tool found about a model, before it is held against the budgets."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from tfx_edge.schemas.target import OpPlacement


@dataclass(frozen=True)
class Outcome:
    """The findings of one tool.

    Attributes:
        tool: what judged the model, with its version.
        measurements: by name, each with its unit.
        ops: where the model's operators run.
        reasons: why the model doesn't suit the target whatever the budgets are.
        compiled: the model as the tool compiled it for the device, if it does.
    """

    tool: str
    measurements: dict[str, float] = field(default_factory=dict)
    ops: tuple[OpPlacement, ...] = ()
    reasons: tuple[str, ...] = ()
    compiled: bytes | None = None


def group(placements: Iterable[OpPlacement]) -> tuple[OpPlacement, ...]:
    """Merges those that are alike but for count and output, in order of their first."""
    groups: dict[tuple[str, str, str], list[OpPlacement]] = {}
    for placement in placements:
        groups.setdefault((placement.operator, placement.runs_on, placement.reason), []).append(placement)
    return tuple(same[0].model_copy(update={"count": sum(p.count for p in same)}) for same in groups.values())


def shortened(lines: Iterable[str], most: int = 3) -> str:
    """Some lines as one, the number of the others at its end.

    >>> shortened(["a", "b", "c", "d"])
    'a; b; c; and 1 more'
    """
    lines = list(lines)
    more = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return "; ".join(itertools.chain(lines[:most], more))

"""The targets of a gate's config, each checked by its tool."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert.targets import check
from tfx_edge.schemas import Target, TargetReport


def check_targets(
    candidate: bytes, targets: Sequence[Target], features: Mapping[str, NDArray[Any]] | None, time_limit_s: float
) -> tuple[TargetReport, ...]:
    """What each target's tool says.

    Args:
        candidate: the flatbuffer.
        targets: of the config.
        features: examples, `[n, ...]` each, by feature name; None where the models couldn't be run, so no target can be checked.
        time_limit_s: for each tool.
    """
    return tuple(
        _unchecked(target) if features is None else check(candidate, target, features, time_limit_s=time_limit_s) for target in targets
    )


def _unchecked(target: Target) -> TargetReport:
    profile = target.resolve()
    reason = f"{profile.name}: not checked, since the models couldn't be run; mend what keeps them from it"
    return TargetReport(profile=profile.name, tool=profile.tool, measurements={}, ops=(), reasons=(reason,))

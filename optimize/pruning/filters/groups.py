"""Filters that can only go together, and the layers that can't lose any, with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import tf_keras

from tfx_edge.optimize.frozen import FROZEN, is_frozen, way_out
from tfx_edge.optimize.pruning.filters.channels import Channels, Ids
from tfx_edge.optimize.pruning.layer_targets import layer_targets
from tfx_edge.schemas import EdgeError, PruningConfig


@dataclass(frozen=True)
class Group:
    """Layers that lose the same filters: one layer, or those whose outputs are added.

    Attributes:
        layers: names, in the model's order.
        ids: of the filters, in the first layer's order.
        target: the share of them to remove.
    """

    layers: tuple[str, ...]
    ids: Ids
    target: float


def group_filters(
    model: tf_keras.Model, channels: Channels, config: PruningConfig, scores: Mapping[int, float]
) -> tuple[tuple[Group, ...], dict[str, str]]:
    """Decides which layers lose filters.

    Args:
        model: see `follow_channels`.
        channels: what it found.
        config: patterns and sparsities; layers that go together get the least sparsity of them.
        scores: of each filter's id; one that isn't there can't be ranked.

    Returns:
        The groups, and layer name to reason for the layers that make channels and are left.

    Raises:
        EdgeError: a pattern matches nothing, or no layer can lose filters.
    """
    targets, unselected = layer_targets(model, config, channels.filters)
    left: dict[str, str] = {}
    for name, ids in channels.filters.items():
        fixed = next((channels.fixed[int(key)] for key in ids if int(key) in channels.fixed), "")
        unranked = "" if all(int(key) in scores for key in ids) else "no BatchNormalization with a scale reads its filters"
        frozen = FROZEN if is_frozen(model.get_layer(name)) else ""
        reason = unselected.get(name) or frozen or fixed or unranked
        if reason:
            left[name] = reason
    _spread(channels, left)
    members: dict[int, list[str]] = {}
    for name in filter(lambda n: n not in left, channels.filters):
        for key in np.unique(channels.filters[name]):
            members.setdefault(int(key), []).append(name)
    together: dict[tuple[str, ...], list[int]] = {}
    for key, names in members.items():
        together.setdefault(tuple(names), []).append(key)
    if not together:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left.items() if name in targets)
        raise EdgeError(
            f"layers {list(config.layers)}: no layer of model {model.name!r} that matches can lose filters ({reasons}); "
            f"{way_out(left.values())}"
        )
    return tuple(Group(names, np.array(ids, np.int64), min(targets[name] for name in names)) for names, ids in together.items()), left


def _spread(channels: Channels, left: dict[str, str]) -> None:
    """Leaves the layers too whose filters go together with those of one that is left."""
    spread = True
    while spread:
        kept = {int(key): name for name in left for key in channels.filters[name]}
        found = {
            name: next((kept[int(key)] for key in ids if int(key) in kept), None)
            for name, ids in channels.filters.items()
            if name not in left
        }
        spread = any(found.values())
        left |= {name: f"its filters go together with those of {other!r}: {left[other]}" for name, other in found.items() if other}

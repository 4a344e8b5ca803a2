"""Which filters matter least."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.pruning.filters.channels import Channels, Ids
from tfx_edge.optimize.pruning.filters.groups import Group

Criterion = Literal["l1", "l2", "batch_norm"]


def rank_filters(model: tf_keras.Model, channels: Channels, criterion: Criterion) -> dict[int, float]:
    """Scores filters, the least important lowest.

    Args:
        model: with its weights.
        channels: its filters.
        criterion: the norm of a filter's kernel (Li et al. 2017), as a share of the layer's mean so that filters of several layers
            that go together compare; or the magnitude of the scale of the BatchNormalization that reads it (Liu et al. 2017).

    Returns:
        Id to the mean score of the filters that share it; without those that no BatchNormalization reads.
    """
    found: dict[int, list[float]] = {}
    for ids, scores in (_scales if criterion == "batch_norm" else _norms)(model, channels, criterion):
        for key, score in zip(ids, scores, strict=True):
            found.setdefault(int(key), []).append(float(score))
    return {key: float(np.mean(scores)) for key, scores in found.items()}


def smallest(group: Group, scores: Mapping[int, float], share: float, multiple_of: int = 1) -> frozenset[int]:
    """The ids to remove from a group.

    Args:
        group: of which at least one filter stays.
        scores: of each id.
        share: of the filters to remove, to the nearest filter.
        multiple_of: how many stay is rounded up to a multiple of this, to all at most.
    """
    count = len(group.ids)
    kept = max(1, count - round(share * count))
    kept = min(count, -(-kept // multiple_of) * multiple_of)
    order = sorted(group.ids, key=lambda key: scores[int(key)])  # stable: the first of equal ones go
    return frozenset(int(key) for key in order[: count - kept])


def _norms(model: tf_keras.Model, channels: Channels, criterion: Criterion) -> list[tuple[Ids, NDArray[Any]]]:
    found = []
    for name, ids in channels.filters.items():
        kernel, axis = _kernel(model.get_layer(name), ids, channels.slices[name])
        rows = np.abs(np.moveaxis(kernel, axis, 0).reshape(len(ids), -1).astype(np.float64))
        norms = rows.sum(1) if criterion == "l1" else np.sqrt((rows**2).sum(1))
        found.append((ids, norms / (norms.mean() or 1.0)))
    return found


def _kernel(layer: tf_keras.layers.Layer, ids: Ids, slices: list[dict[int, Ids]]) -> tuple[NDArray[Any], int]:
    """The weight that makes the filters and the axis on which they lie."""
    place = max(i for i, axes in enumerate(slices) if any(axis < 0 for axis in axes))  # a separable convolution's last kernel
    transposed = isinstance(layer, (tf_keras.layers.Conv1DTranspose, tf_keras.layers.Conv2DTranspose, tf_keras.layers.Conv3DTranspose))
    weight: NDArray[Any] = layer.get_weights()[place]
    return weight, -2 if transposed else -1


def _scales(model: tf_keras.Model, channels: Channels, criterion: Criterion) -> list[tuple[Ids, NDArray[Any]]]:
    found = []
    for name, slices in channels.slices.items():
        layer = model.get_layer(name)
        if isinstance(layer, tf_keras.layers.BatchNormalization) and layer.scale:
            found.append((slices[0][0], np.abs(layer.gamma.numpy())))
    return found

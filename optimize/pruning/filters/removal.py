"""The model without some of its filters."""

from collections.abc import Collection
from typing import Any

import numpy as np
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.pruning.filters.channels import Channels, Ids

Weights = dict[str, list[NDArray[Any]]]


def smaller_model(model: tf_keras.Model, channels: Channels, removed: Collection[int]) -> tf_keras.Model:
    """Makes the layers again with fewer filters or units, and gives them the weights that are left.

    Args:
        model: stays as it is.
        channels: what `follow_channels` found in it.
        removed: ids of the filters that go.

    Returns:
        The same layers and names; not compiled.
    """

    def shrink(layer: tf_keras.layers.Layer) -> tf_keras.layers.Layer:
        config = layer.get_config()
        if layer.name in channels.filters:
            config["units" if "units" in config else "filters"] = int(_stay(channels.filters[layer.name], removed).sum())
        twin = type(layer).from_config(config)
        twin._name = layer.name  # the config that Keras makes up for a custom layer without get_config leaves the name out
        return twin

    smaller = tf_keras.models.clone_model(model, clone_function=shrink)
    for layer in model.layers:
        weights = layer.get_weights()
        for place, axes in enumerate(channels.slices.get(layer.name, [])):
            for axis, ids in axes.items():
                weights[place] = np.compress(_stay(ids, removed), weights[place], axis=axis)
        smaller.get_layer(layer.name).set_weights(weights)
    return smaller


def zeroed_weights(model: tf_keras.Model, channels: Channels, removed: Collection[int]) -> Weights:
    """The weights with which the model computes what the smaller one does: every slice of a removed filter is zero.

    Returns:
        Layer name to weights, of the layers that change.
    """
    changed = {}
    for name, slices in channels.slices.items():
        weights = model.get_layer(name).get_weights()
        touched = False
        for place, axes in enumerate(slices):
            for axis, ids in axes.items():
                gone = ~_stay(ids, removed)
                np.moveaxis(weights[place], axis, -1)[..., gone] = 0
                touched |= bool(gone.any())
        if touched:
            changed[name] = weights
    return changed


def _stay(ids: Ids, removed: Collection[int]) -> NDArray[np.bool_]:
    return ~np.isin(ids, list(removed))

"""Layers that the user has frozen, which every technique leaves as they are."""

from collections.abc import Collection

import tf_keras

FROZEN = "it is frozen (trainable is False)"  # why a layer is left


def is_frozen(layer: tf_keras.layers.Layer) -> bool:
    """Whether all of a layer's weights would train, had the user not set `trainable` to False on it or on a layer in it.

    A layer whose weights never train, such as Normalization, isn't frozen.

    >>> import tf_keras
    >>> layer = tf_keras.layers.Dense(1, trainable=False)
    >>> layer.build((None, 2))
    >>> is_frozen(layer)
    True
    """
    return bool(layer.weights) and not layer.trainable_weights and any(not part.trainable for part in layer._flatten_layers())


def way_out(reasons: Collection[str]) -> str:
    """What to do where no layer was found that a technique could change, by the reasons why the layers are left."""
    return "select others, or unfreeze some: layer.trainable = True" if FROZEN in reasons else "select others"

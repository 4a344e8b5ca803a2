"""Layers that compute in 16 bits, as Keras' policy mixed_float16 has them for training on a GPU.

Their weights are float32 already, so that the same layers in float32 compute the same but for rounding. Training tools and the
converter take float32 alone.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import tf_keras

from tfx_edge.schemas import EdgeError

Layer: TypeAlias = tf_keras.layers.Layer

_HALF = ("float16", "bfloat16")


def half_layers(model: tf_keras.Model) -> Iterator[Layer]:
    """The layers of a model, those of nested models too, that compute in 16 bits or hold a layer that does."""
    for layer in model.layers:
        if isinstance(layer, tf_keras.Model):
            yield from half_layers(layer)
        elif not isinstance(layer, tf_keras.layers.InputLayer) and any(part.compute_dtype in _HALF for part in layer._flatten_layers()):
            yield layer


def policy_of(layer: Layer) -> str:
    """The name of the policy for which a layer is among `half_layers`."""
    return next(str(part.dtype_policy.name) for part in layer._flatten_layers() if part.compute_dtype in _HALF)


def float32_config(config: Any) -> Any:
    """A layer's config with float32 in place of every policy of 16 bits, in layers inside of it too.

    >>> float32_config({"units": 2, "dtype": "float16"})
    {'units': 2, 'dtype': 'float32'}
    """
    if isinstance(config, dict):
        return {k: "float32" if k == "dtype" and _is_half(v) else float32_config(v) for k, v in config.items()}
    return [float32_config(value) for value in config] if isinstance(config, list) else config


def check_full_precision(model: tf_keras.Model) -> None:
    """Checks that a model and the layers that will be made beside its own compute in float32.

    Raises:
        EdgeError: they don't; the text names the policy, the layers and the cure.
    """
    found = list(half_layers(model))
    if found:
        names = ", ".join(layer.name for layer in found)
        raise EdgeError(
            f"model {model.name!r}: layers {names} have the dtype policy {policy_of(found[0])!r}, expected float32, as devices and "
            "training tools take it; prepared, report = tfx_edge.optimize.preparation.prepare(model) makes it so with the same weights, "
            "which are float32 already"
        )
    policy = tf_keras.mixed_precision.global_policy()
    if policy.compute_dtype in _HALF:
        raise EdgeError(
            f"Keras' global dtype policy is {policy.name!r}, which new layers would have, expected float32; call "
            "tf_keras.mixed_precision.set_global_policy('float32') first"
        )


def _is_half(policy: Any) -> bool:
    name = policy.get("config", {}).get("name") if isinstance(policy, dict) else policy
    return isinstance(name, str) and name.removeprefix("mixed_") in _HALF

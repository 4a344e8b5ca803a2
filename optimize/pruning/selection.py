"""Which layers are pruned, and why the others are not."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

import tf_keras

from tfx_edge.optimize.pruning.wrapper import PrunedLayer
from tfx_edge.schemas import EdgeError


@dataclass(frozen=True)
class Choice:
    """What is done with one layer."""

    layer: str
    type: str
    prunable: tuple[int, ...]  # places in layer.weights of what tfmot can prune
    reason: str  # why the layer is left; empty where it is pruned

    @property
    def pruned(self) -> bool:
        return not self.reason


def choose_layers(model: tf_keras.Model, patterns: Sequence[str]) -> tuple[Choice, ...]:
    """Decides on every layer of a model, in the model's order.

    Args:
        model: a copy: asking tfmot what it can prune leaves a function on the layer.
        patterns: shell patterns over layer names.

    Raises:
        EdgeError: a pattern matches no layer, or no layer that matches can be pruned.
    """
    names = [layer.name for layer in model.layers]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise EdgeError(f"layers: pattern {pattern!r} matches no layer of model {model.name!r}, which has {', '.join(names)}")
    choices = tuple(_choose(layer, patterns) for layer in model.layers)
    if not any(choice.pruned for choice in choices):
        matching = "; ".join(f"{c.layer}: {c.reason}" for c in choices if _matches(c.layer, patterns))
        raise EdgeError(f"layers {list(patterns)}: no layer of model {model.name!r} that matches can be pruned ({matching}); select others")
    return choices


def _choose(layer: tf_keras.layers.Layer, patterns: Sequence[str]) -> Choice:
    prunable, reason = _prunable_weights(layer)
    if not _matches(layer.name, patterns):
        reason = "no pattern in layers matches it"
    return Choice(layer.name, type(layer).__name__, prunable, reason)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _prunable_weights(layer: tf_keras.layers.Layer) -> tuple[tuple[int, ...], str]:
    """The places of the weights that tfmot prunes, and if there are none, why."""
    kind = type(layer).__name__
    if not layer.weights:
        return (), "it has no weights"
    if isinstance(layer, tf_keras.Model):
        return (), "it is a nested model, and tfmot prunes single layers"
    try:
        variables = PrunedLayer(layer).layer.get_prunable_weights()
    except ValueError:
        return (), f"tfmot doesn't support the layer type {kind}"
    ids = {id(variable) for variable in variables}
    places = tuple(i for i, weight in enumerate(layer.weights) if id(weight) in ids)
    return places, "" if places else f"tfmot prunes no weight of the layer type {kind}"

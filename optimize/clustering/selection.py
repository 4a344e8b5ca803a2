"""Which layers are clustered, with how many values, and why the others are not."""

from dataclasses import dataclass

import tf_keras
from tensorflow_model_optimization.python.core.clustering.keras.clusterable_layer import ClusterableLayer
from tensorflow_model_optimization.python.core.clustering.keras.clustering_registry import ClusteringRegistry

from tfx_edge.optimize.frozen import FROZEN, is_frozen, way_out
from tfx_edge.optimize.layer_patterns import UNSELECTED, check_patterns, first_match
from tfx_edge.schemas import ClusteringConfig, EdgeError

_CONV2D = (tf_keras.layers.Conv2D,)
_NOT_CONV2D = (tf_keras.layers.Conv2DTranspose, tf_keras.layers.DepthwiseConv2D)  # subclasses whose last axis isn't the output channel


@dataclass(frozen=True)
class Choice:
    """What is done with one layer."""

    layer: str
    type: str
    kernels: tuple[int, ...]  # places in layer.weights of what can be clustered
    clusters: int
    per_channel: bool
    reason: str  # why the layer is left; empty where it is clustered

    @property
    def clustered(self) -> bool:
        return not self.reason


def choose_layers(model: tf_keras.Model, config: ClusteringConfig) -> tuple[Choice, ...]:
    """Decides on every layer of a model, in the model's order.

    Args:
        model: a copy: asking tfmot what it can cluster leaves a function on the layer.
        config: the patterns.

    Raises:
        EdgeError: a pattern matches no layer, or no layer that matches can be clustered.
    """
    names = [layer.name for layer in model.layers]
    check_patterns("clusters", config.clusters, names, model.name)
    choices = tuple(_choose(layer, config) for layer in model.layers)
    if not any(choice.clustered for choice in choices):
        matching = "; ".join(f"{c.layer}: {c.reason}" for c in choices if c.clusters)
        raise EdgeError(
            f"clusters {list(config.clusters)}: no layer of model {model.name!r} that matches can be clustered ({matching}); "
            f"{way_out([c.reason for c in choices])}"
        )
    return choices


def _choose(layer: tf_keras.layers.Layer, config: ClusteringConfig) -> Choice:
    clusters = first_match(layer.name, config.clusters, 0)
    kernels, reason = _kernels(layer)
    per_channel = config.per_channel and isinstance(layer, _CONV2D) and not isinstance(layer, _NOT_CONV2D)
    if not clusters:
        reason = UNSELECTED.format("clusters")
    elif not reason:
        sizes = [layer.weights[place].shape.num_elements() // (layer.weights[place].shape[-1] if per_channel else 1) for place in kernels]
        if max(sizes) <= clusters:
            reason = f"{'a channel' if per_channel else 'its kernel'} has {max(sizes)} weights, no more than the {clusters} clusters"
    return Choice(layer.name, type(layer).__name__, kernels, clusters, per_channel, reason)


def _kernels(layer: tf_keras.layers.Layer) -> tuple[tuple[int, ...], str]:
    """The places of the weights that tfmot clusters, and if there are none, why."""
    kind = type(layer).__name__
    if not layer.weights:
        return (), "it has no weights"
    if is_frozen(layer):
        return (), FROZEN
    if isinstance(layer, tf_keras.Model):
        return (), "it is a nested model, and tfmot clusters single layers"
    if not isinstance(layer, ClusterableLayer):
        if not ClusteringRegistry.supports(layer):
            return (), f"tfmot doesn't support the layer type {kind}"
        ClusteringRegistry.make_clusterable(layer)
    ids = {id(variable) for _, variable in layer.get_clusterable_weights()}
    places = tuple(i for i, weight in enumerate(layer.weights) if id(weight) in ids)
    return places, "" if places else f"tfmot clusters no weight of the layer type {kind}"

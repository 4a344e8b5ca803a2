"""Which layers are pruned how far, and why the others are not."""

from dataclasses import dataclass

import tf_keras
from tensorflow_model_optimization.python.core.sparsity.keras.pruning_policy import PruneForLatencyOnXNNPack

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.frozen import FROZEN, is_frozen, way_out
from tfx_edge.optimize.pruning.layer_targets import layer_targets
from tfx_edge.optimize.pruning.wrapper import PrunedLayer
from tfx_edge.schemas import EdgeError, PruningConfig
from tfx_edge.schemas.granularity import Block, Granularity, MOfN, XnnpackLatency

# Layers whose kernel's second to last axis becomes the last of a flatbuffer's weights.
_GROUPED = (tf_keras.layers.Dense, tf_keras.layers.Conv2D, tf_keras.layers.SeparableConv2D)


@dataclass(frozen=True)
class Choice:
    """What is done with one layer."""

    layer: str
    type: str
    prunable: tuple[int, ...]  # places in layer.weights of what tfmot can prune
    target: float  # the sparsity asked for
    reason: str  # why the layer is left; empty where it is pruned

    @property
    def pruned(self) -> bool:
        return not self.reason


def choose_layers(model: tf_keras.Model, config: PruningConfig) -> tuple[Choice, ...]:
    """Decides on every layer of a model, in the model's order.

    Args:
        model: a copy: asking tfmot what it can prune leaves a function on the layer.
        config: patterns, sparsities and granularity.

    Raises:
        EdgeError: a pattern matches no layer, no layer that matches can be pruned, or XNNPACK couldn't run the model's sparse kernels.
    """
    if isinstance(config.granularity, XnnpackLatency):
        _check_xnnpack(model)
    weights = {layer.name: _prunable_weights(layer) for layer in model.layers}
    targets, left = layer_targets(model, config, [name for name, (places, _) in weights.items() if places])
    choices = []
    for layer in model.layers:
        places, reason = weights[layer.name]
        reason = left.get(layer.name) or reason or _does_not_fit(layer, places, config.granularity)
        choices.append(Choice(layer.name, type(layer).__name__, places, 0.0 if reason else targets[layer.name], reason))
    if not any(choice.pruned for choice in choices):
        reasons = "; ".join(f"{c.layer}: {c.reason}" for c in choices if not c.reason.startswith("no pattern"))
        raise EdgeError(
            f"layers {list(config.layers)}: no layer of model {model.name!r} that matches can be pruned ({reasons}); "
            f"{way_out([c.reason for c in choices])}"
        )
    return tuple(choices)


def _prunable_weights(layer: tf_keras.layers.Layer) -> tuple[tuple[int, ...], str]:
    """The places of the weights that tfmot prunes, and if there are none, why."""
    kind = type(layer).__name__
    if not layer.weights:
        return (), "it has no weights"
    if is_frozen(layer):
        return (), FROZEN
    if isinstance(layer, tf_keras.Model):
        return (), "it is a nested model, and tfmot prunes single layers; flatten it with tfx_edge.optimize.preparation.prepare(model)"
    try:
        variables = PrunedLayer(layer).layer.get_prunable_weights()
    except ValueError:
        return (), f"tfmot doesn't support the layer type {kind}"
    ids = {id(variable) for variable in variables}
    places = tuple(i for i, weight in enumerate(layer.weights) if id(weight) in ids)
    return places, "" if places else f"tfmot prunes no weight of the layer type {kind}"


def _does_not_fit(layer: tf_keras.layers.Layer, places: tuple[int, ...], granularity: Granularity) -> str:
    """Why a layer can't be pruned in these units; empty where it can."""
    kind, shapes = type(layer).__name__, [tuple(layer.weights[place].shape) for place in places]
    if isinstance(granularity, Block):
        rows, columns = granularity.inputs, granularity.outputs
        for shape in shapes:
            if len(shape) != 2:
                return f"blocks need weights of rank 2, those of {kind} have rank {len(shape)}"
            if shape[0] % rows or shape[1] % columns:  # tfmot would rank blocks that lie elsewhere than those it prunes
                return f"its weights {shape[0]} x {shape[1]} don't divide into blocks of {rows} inputs x {columns} outputs"
    if isinstance(granularity, MOfN):
        if not isinstance(layer, _GROUPED) or isinstance(layer, tf_keras.layers.Conv2DTranspose):
            return f"m of n needs Dense, Conv2D or SeparableConv2D, whose input channels lie last in a flatbuffer; it is {kind}"
        channels = min(shape[-2] for shape in shapes)
        if channels <= granularity.group - granularity.zeros:
            return f"its {channels} input channels fill no group: {granularity.group - granularity.zeros} of each {granularity.group} stay"
    if isinstance(granularity, XnnpackLatency) and not PruneForLatencyOnXNNPack().allow_pruning(layer):
        return f"XNNPACK has sparse kernels for 1x1 Conv2D alone; it is {kind}"
    return ""


class _NamingPolicy(PruneForLatencyOnXNNPack):
    """tfmot's policy, whose error has the layer's class alone."""

    def _check_layer_support(self, layer: tf_keras.layers.Layer) -> bool:
        if not super()._check_layer_support(layer):
            raise ValueError(f"layer {layer.name!r} ({type(layer).__name__}) has no sparse counterpart there as it is configured")
        return True


def _check_xnnpack(model: tf_keras.Model) -> None:
    try:
        _NamingPolicy().ensure_model_supports_pruning(model)
    except ValueError as error:
        raise EdgeError(
            f"model {model.name!r}: XNNPACK can't run it with sparse kernels, so granularity 'xnnpack_latency' gains nothing "
            f"({one_line(error)}); use 'unstructured', or a model such as MobileNet with GlobalAveragePooling2D(keepdims=True)"
        ) from error

"""Which layers are quantized, and why the others aren't."""

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf
import tf_keras
from tensorflow_model_optimization.python.core.quantization.keras.default_8bit.default_8bit_quantize_registry import (
    Default8BitQuantizeRegistry,
)
from tf_keras import layers

from tfx_edge.optimize.layer_patterns import UNSELECTED, check_patterns, is_selected
from tfx_edge.optimize.qat.preserve import kept
from tfx_edge.schemas import EdgeError, QatConfig

_FOLDED_INTO = (layers.Conv2D, layers.DepthwiseConv2D, layers.SeparableConv2D, layers.Dense)


@dataclass(frozen=True)
class Choice:
    """What is done with one layer."""

    layer: str
    type: str
    reason: str  # why int8 isn't emulated; empty where it is

    @property
    def quantized(self) -> bool:
        return not self.reason


def choose_layers(model: tf_keras.Model, config: QatConfig) -> tuple[Choice, ...]:
    """Decides on every layer of a model but its inputs, in the model's order.

    Raises:
        EdgeError: a pattern matches no layer, or no layer with weights that matches can be quantized.
    """
    found = [layer for layer in model.layers if not isinstance(layer, layers.InputLayer)]
    names = [layer.name for layer in found]
    check_patterns("layers", config.layers, names, model.name)
    registry = Default8BitQuantizeRegistry()
    choices: dict[str, Choice] = {}
    for layer in found:  # in the order of the computation
        reason = _reason(layer, config, registry) or _unready(layer, choices)
        choices[layer.name] = Choice(layer.name, type(layer).__name__, reason)
    if not any(choices[layer.name].quantized and layer.weights for layer in found):
        matching = "; ".join(f"{c.layer}: {c.reason}" for c in choices.values() if c.reason)
        raise EdgeError(
            f"layers {list(config.layers)}: no layer with weights of model {model.name!r} can be quantized ({matching}); "
            "select others, or use post-training quantization"
        )
    return tuple(choices.values())


def takes_range(layer: layers.Layer) -> bool:
    """Whether tfmot's wrapper can give the output of a float layer a range, without which the layer behind can't be int8."""
    if isinstance(layer, tf_keras.Model) or len(layer.inbound_nodes) != 1 or len(layer.inbound_nodes[0].call_args) != 1:
        return False
    try:
        layer.compute_output_shape(layer.input_shape)
    except Exception:  # noqa: BLE001 - NotImplementedError and TypeError so far; a custom layer raises anything
        return False
    return isinstance(layer.output, tf_keras.__internal__.KerasTensor) and bool(layer.output.dtype.is_floating)


def _sources(layer: layers.Layer) -> list[layers.Layer]:
    return list(tf.nest.flatten(layer.inbound_nodes[0].inbound_layers))


def _unready(layer: layers.Layer, decided: Mapping[str, Choice]) -> str:
    """Why a layer that could be int8 doesn't get its input as such."""
    for source in _sources(layer):
        if source.name in decided and not decided[source.name].quantized and not takes_range(source):
            return f"its input comes from the float layer {source.name!r}, whose output tfmot can't give a range"
    return ""


def _reason(layer: layers.Layer, config: QatConfig, registry: Default8BitQuantizeRegistry) -> str:
    kind = type(layer).__name__
    if not is_selected(layer.name, config.layers):
        return UNSELECTED.format("layers")
    if isinstance(layer, tf_keras.Model):
        return "it is a nested model, and tfmot quantizes single layers; flatten it with tfx_edge.optimize.preparation.prepare(model)"
    if len(layer.inbound_nodes) > 1:
        return "the model calls it more than once, and tfmot takes one range for its output"
    if isinstance(layer, layers.BatchNormalization):
        return _unfoldable(layer, config, registry)
    if isinstance(layer, layers.Dense) and len(layer.input_shape) > 2:
        return f"its input has {len(layer.input_shape)} dimensions, and the converter makes a float product of that"
    if isinstance(layer, layers.Conv2DTranspose):
        return "Keras can't save tfmot's 8-bit form of a Conv2DTranspose"
    if registry.supports(layer) or type(layer) is layers.SeparableConv2D:  # see `splitting`
        return ""
    return f"tfmot has no 8-bit form of the layer type {kind}"


def _unfoldable(norm: layers.Layer, config: QatConfig, registry: Default8BitQuantizeRegistry) -> str:
    """Why a BatchNormalization can't be folded into the layer before it."""
    [before] = _sources(norm)
    if not isinstance(before, _FOLDED_INTO) or isinstance(before, layers.Conv2DTranspose):
        kind = type(before).__name__
        return f"a BatchNormalization is folded into Conv2D, DepthwiseConv2D, SeparableConv2D and Dense alone; before it is a {kind}"
    if len(before.outbound_nodes) > 1:
        return f"the output of {before.name!r} has other readers too, so it can't be folded into that"
    if before.activation is not tf_keras.activations.linear:
        return f"{before.name!r} has an activation, so it can't be folded into that"
    if isinstance(before, layers.Dense) and "clusters" in kept(before.kernel.numpy(), config):
        return f"the weights of {before.name!r} share values, which folding would multiply by a factor for each output"
    return f"{before.name!r} stays float" if _reason(before, config, registry) else ""

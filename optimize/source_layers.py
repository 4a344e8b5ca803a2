"""The layers of a Keras model as plain data, for a report that knows nothing of Keras."""

from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.graph.names import is_nested, unique_names
from tfx_edge.schemas.operators import SourceLayer

Layer: TypeAlias = tf_keras.layers.Layer


def source_layers(model: tf_keras.Model) -> tuple[SourceLayer, ...]:
    """Lists the layers of a model in an order in which each comes behind those that it reads; nested models give their own layers.

    Args:
        model: functional or Sequential Keras 2, built.

    Returns:
        One entry a layer, with the names that edge preparation gives; a layer that is called several times reads what all calls read.
        Inputs are left out.

    >>> import tf_keras
    >>> convolution = tf_keras.layers.Conv2D(4, 3, input_shape=(8, 8, 2), name="conv")
    >>> model = tf_keras.Sequential([convolution, tf_keras.layers.ReLU(name="relu")])
    >>> [(layer.name, layer.kind, layer.inputs) for layer in source_layers(model)]
    [('conv', 'Conv2D', ()), ('relu', 'ReLU', ('conv',))]
    """
    walk = _Walk(model)
    sources = walk.run(model, [() for _ in model.inputs])
    outputs: dict[str, list[str]] = {}
    for output, names in zip(model.output_names, sources, strict=True):
        for name in names:
            outputs.setdefault(name, []).append(output)
    return tuple(
        SourceLayer(
            name=name,
            kind=type(_inside(layer)).__name__,
            inputs=tuple(dict.fromkeys(walk.reads[name])),
            outputs=tuple(outputs.get(name, ())),
            activation=_activation(_inside(layer)),
        )
        for name, layer in walk.layers.items()
    )


class _Walk:
    """Follows names of layers through a model's calls, and into the models in it."""

    def __init__(self, model: tf_keras.Model) -> None:
        self._names = unique_names(model)
        self.layers: dict[str, Layer] = {}
        self.reads: dict[str, list[str]] = {}

    def run(self, model: tf_keras.Model, inputs: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """The layers that a model's outputs come from, given those of its inputs; none for an input itself."""
        values = dict(zip(map(id, model.inputs), inputs, strict=True))
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                if not node.is_input:
                    read = [values[id(tensor)] for tensor in node.keras_inputs]
                    given = self._call(node, read)
                    values.update(zip(map(id, tf.nest.flatten(node.outputs)), given, strict=True))
        return [values[id(tensor)] for tensor in model.outputs]

    def _call(self, node: Any, read: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        layer = node.layer
        if is_nested(layer):
            return self.run(layer, read)
        name = self._names[id(layer)]
        self.layers.setdefault(name, layer)
        self.reads.setdefault(name, []).extend(source for names in read for source in names)
        return [(name,) for _ in tf.nest.flatten(node.outputs)]


def _inside(layer: Layer) -> Layer:
    """The layer itself, where quantization-aware training has wrapped it."""
    return layer.layer if type(layer).__name__ == "QuantizeWrapperV2" else layer


def _activation(layer: Layer) -> str | None:
    """Keras' name of the activation that a layer is, or has at its end; None for none."""
    if type(layer) is tf_keras.layers.ReLU:
        if layer.negative_slope or layer.threshold or (layer.max_value is not None and float(layer.max_value) != 6):
            return None
        return "relu" if layer.max_value is None else "relu6"
    function = getattr(layer, "activation", None)
    name = getattr(getattr(function, "activation", function), "__name__", None)  # quantization-aware training wraps this too
    return None if name in (None, "linear") else str(name)

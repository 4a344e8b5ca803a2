"""The calls of layers that make up a Keras model, in an order in which each finds its inputs made."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras


@dataclass(frozen=True)
class LayerCall:
    """One call of a layer; a shared layer has several.

    Attributes:
        layer: which layer.
        inputs: keys of the tensors that go in; empty for the model's inputs.
        outputs: keys of the tensors that come out.
        input_shapes: their shapes, None where a dimension is unknown, the batch's first.
        output_shapes: likewise.
    """

    layer: tf_keras.layers.Layer
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_shapes: tuple[tuple[int | None, ...], ...]
    output_shapes: tuple[tuple[int | None, ...], ...]


def layer_calls(model: tf_keras.Model) -> Iterator[LayerCall]:
    """Walks a functional or Sequential model that is built.

    Keras keeps a model's own calls in `_nodes_by_depth` alone: a layer also remembers those of other models.
    """
    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            inputs = [] if node.is_input else node.keras_inputs
            outputs = tf.nest.flatten(node.outputs)
            yield LayerCall(
                node.layer,
                tuple(id(t) for t in inputs),
                tuple(id(t) for t in outputs),
                tuple(_shape(t) for t in inputs),
                tuple(_shape(t) for t in outputs),
            )


def _shape(tensor: Any) -> tuple[int | None, ...]:
    return tuple(tensor.shape.as_list()) if tensor.shape.rank is not None else ()

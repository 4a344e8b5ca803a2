"""What the last layer of a model makes of its numbers: logits or probabilities."""

from typing import Any

import tf_keras

_PASSING_ON = (tf_keras.layers.Reshape, tf_keras.layers.Flatten, tf_keras.layers.Dropout)


def output_activation(output: Any) -> str | None:
    """The name of the activation that an output of a model went through last; None where it can't be known.

    Layers behind it that only pass values on don't count, nor does a wrapper such as TimeDistributed around it.

    Args:
        output: one of `model.outputs`.
    """
    while True:
        layer, node_index, _ = output._keras_history
        inner = layer.layer if isinstance(layer, tf_keras.layers.TimeDistributed) else layer
        if isinstance(inner, tf_keras.layers.Softmax):
            return "softmax"
        name = getattr(getattr(inner, "activation", None), "__name__", None)
        passes_on = isinstance(inner, _PASSING_ON) or (isinstance(inner, tf_keras.layers.Activation) and name == "linear")
        if not passes_on:
            return name
        output = layer.get_input_at(node_index)

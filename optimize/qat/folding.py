"""BatchNormalization folded into the Dense layer before it.

tfmot leaves that to the converter, which multiplies the weights by a factor a channel; but a Dense kernel has one scale, so the
converter makes a float layer of it. Into convolutions, which have a scale a channel, the converter folds well.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.model_copy import twin


def fold_norms(model: tf_keras.Model, norms: Collection[str]) -> tf_keras.Model:
    """A model in which some BatchNormalizations do nothing any more and the layers before them have their effect.

    Args:
        model: stays as it is; each of these layers stands behind a Dense layer, which nothing else reads.
        norms: names of BatchNormalizations.

    Returns:
        A model of the same layer names and, but for rounding, the same outputs; not compiled. Zeros in kernels stay.
    """
    before = {norm: model.get_layer(norm).inbound_nodes[0].inbound_layers.name for norm in norms}

    def replacement(layer: layers.Layer) -> layers.Layer:
        if layer.name in norms:
            return layers.Activation("linear", name=layer.name, dtype=layer.dtype)
        return twin(layer, use_bias=True) if layer.name in before.values() else twin(layer)

    folded = tf_keras.models.clone_model(model, clone_function=replacement)
    for layer in model.layers:
        if layer.name not in norms and layer.name not in before.values():
            folded.get_layer(layer.name).set_weights(layer.get_weights())
    for norm, dense in before.items():
        kernel, *bias = model.get_layer(dense).get_weights()
        scale, offset = _affine(model.get_layer(norm))
        folded.get_layer(dense).set_weights([kernel * scale, (bias[0] if bias else np.zeros_like(offset)) * scale + offset])
    return folded


def _affine(norm: layers.BatchNormalization) -> tuple[Any, Any]:
    """What a BatchNormalization multiplies by and adds, by channel."""
    mean, variance = norm.moving_mean.numpy(), norm.moving_variance.numpy()
    scale = (norm.gamma.numpy() if norm.scale else 1.0) / np.sqrt(variance + norm.epsilon)
    return scale, (norm.beta.numpy() if norm.center else 0.0) - mean * scale

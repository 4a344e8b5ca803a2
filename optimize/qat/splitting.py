"""A separable convolution as the two layers that it computes.

tfmot splits them too, but names the new layers as it comes: in a model that was loaded they take the names of others.
"""

from collections.abc import Collection
from typing import Any

import tf_keras
from tf_keras import layers

from tfx_edge.optimize.graph import rebuild


def split_separable(model: tf_keras.Model, names: Collection[str]) -> tf_keras.Model:
    """A model in which some SeparableConv2D layers are a DepthwiseConv2D and a Conv2D.

    Args:
        model: stays as it is.
        names: of the layers, none of which is called more than once. The Conv2D takes the layer's name, the other one
            `<name>_depthwise`.

    Returns:
        A model with the same outputs; not compiled. `model` itself where `names` is empty.
    """
    if not names:
        return model
    made: list[tuple[layers.Layer, list[Any]]] = []

    def replace(layer: layers.Layer, inputs: Any, _: dict[str, Any]) -> Any:
        if layer.name not in names:
            return None
        depthwise, pointwise = _depthwise(layer), _pointwise(layer)
        outputs = pointwise(depthwise(inputs))
        depthwise_kernel, *rest = layer.get_weights()
        made.extend([(depthwise, [depthwise_kernel]), (pointwise, rest)])
        return outputs

    split = rebuild(model, replace)
    for layer, weights in made:
        layer.set_weights(weights)
    return split


def _depthwise(layer: layers.SeparableConv2D) -> layers.DepthwiseConv2D:
    return layers.DepthwiseConv2D(
        layer.kernel_size,
        strides=layer.strides,
        padding=layer.padding,
        depth_multiplier=layer.depth_multiplier,
        data_format=layer.data_format,
        dilation_rate=layer.dilation_rate,
        use_bias=False,
        depthwise_regularizer=layer.depthwise_regularizer,
        depthwise_constraint=layer.depthwise_constraint,
        trainable=layer.trainable,
        dtype=layer.dtype,
        name=f"{layer.name}_depthwise",
    )


def _pointwise(layer: layers.SeparableConv2D) -> layers.Conv2D:
    return layers.Conv2D(
        layer.filters,
        1,
        data_format=layer.data_format,
        activation=layer.activation,
        use_bias=layer.use_bias,
        kernel_regularizer=layer.pointwise_regularizer,
        bias_regularizer=layer.bias_regularizer,
        kernel_constraint=layer.pointwise_constraint,
        bias_constraint=layer.bias_constraint,
        activity_regularizer=layer.activity_regularizer,
        trainable=layer.trainable,
        dtype=layer.dtype,
        name=layer.name,
    )

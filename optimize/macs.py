"""What a model costs to run, counted by its layers."""

import math
from collections.abc import Sequence

import tf_keras
from tf_keras import layers

from tfx_edge.optimize.layer_calls import layer_calls
from tfx_edge.schemas import EdgeError

Shape = Sequence[int | None]

_CONVOLUTIONS = (layers.Conv1D, layers.Conv2D, layers.Conv3D)
_TRANSPOSED = (layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose)
_RECURRENT = (layers.SimpleRNN, layers.LSTM, layers.GRU)


def count_macs(model: tf_keras.Model) -> dict[str, int]:
    """Multiplications of activations with weights (multiply-accumulates), as dense kernels do them: padding and zeros included.

    Counted are convolutions, Dense, SimpleRNN, LSTM, GRU, Bidirectional, TimeDistributed and nested models. Other layers count
    as 0: normalizations, activations and pooling cost far less, and what attention and custom layers multiply isn't known.

    Args:
        model: functional or Sequential, built.

    Returns:
        Layer name to its count for one example, in the model's order; a layer that is called twice counts twice.

    Raises:
        EdgeError: a layer that counts has an input or output of unknown size.

    >>> import tf_keras
    >>> convolution = tf_keras.layers.Conv2D(4, 3, input_shape=(8, 8, 2), name="conv")
    >>> model = tf_keras.Sequential([convolution, tf_keras.layers.Flatten(name="flat")])
    >>> count_macs(model)  # 6 x 6 places, 3 x 3 x 2 weights, 4 filters
    {'conv': 2592, 'flat': 0}
    """
    counts = {layer.name: 0 for layer in model.layers}
    for call in layer_calls(model):
        if call.inputs and call.layer.weights:
            counts[call.layer.name] += _macs(call.layer, call.input_shapes[0], call.output_shapes[0])
    return counts


def _macs(layer: tf_keras.layers.Layer, into: Shape, out: Shape) -> int:
    """Of one call: the kernel's elements, once for each place that it is put on."""
    if isinstance(layer, tf_keras.Model):
        return sum(count_macs(layer).values())
    if isinstance(layer, layers.Bidirectional):
        return _macs(layer.forward_layer, into, out) + _macs(layer.backward_layer, into, out)
    if isinstance(layer, layers.TimeDistributed):
        return _known(layer, into[1:2]) * _macs(layer.layer, [into[0], *into[2:]], [out[0], *out[2:]])
    if isinstance(layer, (layers.SeparableConv1D, layers.SeparableConv2D)):
        return (_size(layer.depthwise_kernel) + _size(layer.pointwise_kernel)) * _known(layer, _places(layer, out))
    if isinstance(layer, (layers.DepthwiseConv1D, layers.DepthwiseConv2D)):
        return _size(layer.depthwise_kernel) * _known(layer, _places(layer, out))
    if isinstance(layer, _TRANSPOSED):  # puts its kernel on each place of the input; a subclass of the convolutions
        return _size(layer.kernel) * _known(layer, _places(layer, into))
    if isinstance(layer, _CONVOLUTIONS):
        return _size(layer.kernel) * _known(layer, _places(layer, out))
    if isinstance(layer, layers.Dense):
        return _size(layer.kernel) * _known(layer, into[1:-1])
    if isinstance(layer, _RECURRENT):
        return (_size(layer.cell.kernel) + _size(layer.cell.recurrent_kernel)) * _known(layer, into[1:2])
    return 0


def _places(layer: tf_keras.layers.Layer, shape: Shape) -> Shape:
    return shape[2:] if layer.data_format == "channels_first" else shape[1:-1]


def _known(layer: tf_keras.layers.Layer, dimensions: Shape) -> int:
    sizes = [size for size in dimensions if size is not None]
    if len(sizes) < len(dimensions):
        raise EdgeError(
            f"layer {layer.name!r} works on {' x '.join(map(str, dimensions))} places, so its multiplications can't be counted; "
            "give the model's inputs a fixed shape"
        )
    return math.prod(sizes)


def _size(weight: object) -> int:
    return int(math.prod(weight.shape))  # type: ignore[attr-defined]

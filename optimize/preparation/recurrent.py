"""Recurrent layers that a device would run as a loop, unrolled where their sequences are short.

An unmasked LSTM of the usual form becomes one operator. Any other recurrent layer becomes WHILE, which the quantizer refuses; as a
chain of plain operators, which share their weights, it quantizes.
"""

from typing import Any, TypeAlias

import tf_keras

Layer: TypeAlias = tf_keras.layers.Layer

LONGEST = 32  # time steps; each adds some 10 to 20 operators
_KINDS = (tf_keras.layers.LSTM, tf_keras.layers.GRU, tf_keras.layers.SimpleRNN)


def is_recurrent(layer: Layer) -> bool:
    """Whether Keras loops over time steps in a layer."""
    return isinstance(layer, (tf_keras.layers.RNN, tf_keras.layers.Bidirectional))


def becomes_loop(layer: Layer) -> bool:
    """Whether a layer of a model becomes WHILE on a device."""
    cells = _layers(layer)
    masked = any(getattr(tensor, "_keras_mask", None) is not None for tensor in _sequences(layer))
    return is_recurrent(layer) and not all(_unrolls(cell) or (_fuses(cell) and not masked) for cell in cells)


def can_unroll(layer: Layer) -> bool:
    """Whether a layer becomes a loop that can and should be unrolled."""
    steps = [tensor.shape[1] for tensor in _sequences(layer)]
    known = all(n is not None and n <= LONGEST for n in steps)
    return becomes_loop(layer) and known and all(type(cell) in _KINDS and not cell.stateful for cell in _layers(layer))


def unrolled(layer: Layer) -> Layer:
    """The same layer, to be given the same weights, as a chain of steps."""
    config = layer.get_config()
    inner = [
        config[key]["config"] for key in ("layer", "backward_layer") if isinstance(layer, tf_keras.layers.Bidirectional) and key in config
    ]
    for each in inner or [config]:
        each["unroll"] = True
    twin: Layer = type(layer).from_config(config)
    return twin


def _layers(layer: Layer) -> list[Layer]:
    return [layer.forward_layer, layer.backward_layer] if isinstance(layer, tf_keras.layers.Bidirectional) else [layer]


def _sequences(layer: Layer) -> list[Any]:
    """What a layer is called on; behind the sequence there may be initial states."""
    return [node.keras_inputs[0] for node in layer.inbound_nodes if node.keras_inputs]


def _unrolls(layer: Layer) -> bool:
    return bool(getattr(layer, "unroll", False))


def _fuses(layer: Layer) -> bool:
    """Whether Keras marks the layer's step as the LSTM that the converter knows."""
    return type(layer) is tf_keras.layers.LSTM and bool(getattr(layer, "_could_use_gpu_kernel", False))

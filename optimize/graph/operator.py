"""Operators between layers as a layer of ours.

Keras makes a `TFOpLambda` of every TensorFlow operator on a functional model's tensors (`x * 2`, `x[:, 0]`, `tf.concat([a, b], 1)`),
whose tensors may come as any argument. tfmot refuses those; a layer with its tensors first and all else in its config it passes by.
"""

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tf_keras.src.layers.core.tf_op_layer import TFOpLambda, get_symbol_from_name

from tfx_edge.schemas import EdgeError

_TENSOR, _ARRAY, _DTYPE, _SLICE, _ELLIPSIS = "__tensor__", "__array__", "__dtype__", "__slice__", "__ellipsis__"


@tf_keras.saving.register_keras_serializable("tfx_edge")
class Operator(tf_keras.layers.Layer):
    """Calls a function of TensorFlow's public API on one tensor or a list of them.

    >>> Operator("math.multiply", {"x": {"__tensor__": 0}, "y": 2.0}, name="double")(tf.constant([1.0, 3.0])).numpy()
    array([2., 6.], dtype=float32)
    """

    def __init__(self, function: str, arguments: dict[str, Any], **kwargs: Any) -> None:
        """Takes a name of the API and the arguments.

        Args:
            function: such as `math.multiply`, as Keras names it in the config of its own operator layers.
            arguments: by name, JSON values; `{"__tensor__": i}` stands for the layer's i-th input.
            kwargs: of every layer.
        """
        super().__init__(autocast=False, **kwargs)
        # A tracked attribute would wrap the dicts, which then are no JSON any more.
        self._spec = (function, arguments)
        self._function = get_symbol_from_name(function)
        if self._function is None:
            raise EdgeError(f"layer {self.name!r}: TensorFlow {tf.__version__} has no function {function!r}")

    def call(self, inputs: Any) -> Any:
        """Fills the tensors in and calls the function."""
        tensors = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        return self._function(**{name: _decode(value, tensors) for name, value in self._spec[1].items()})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_spec", "_function"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("autocast", None)
        return {**config, "function": self._spec[0], "arguments": self._spec[1]}


def is_operator(layer: tf_keras.layers.Layer) -> bool:
    """Whether Keras made the layer of an operator."""
    return isinstance(layer, TFOpLambda)


def as_operator(layer: Any, name: str, inputs: Any, kwargs: dict[str, Any]) -> tuple[Operator, Any]:
    """Our layer for one of Keras's operator layers.

    Args:
        layer: for which `is_operator` holds.
        name: of the new layer.
        inputs: the first argument of the call.
        kwargs: the others, by name.

    Returns:
        The layer and what to call it on.

    Raises:
        EdgeError: the function isn't part of TensorFlow's public API, or an argument can't be kept in a config.
    """
    if not layer.symbol:
        raise EdgeError(
            f"layer {layer.name!r}: {layer.function} isn't in TensorFlow's public API; call a public function, or write a layer"
        )
    tensors: list[Any] = []
    arguments = {layer._call_spec.arg_names[0]: inputs, **{k: v for k, v in kwargs.items() if k != "name"}}
    encoded = {k: _encode(v, tensors, layer.name) for k, v in arguments.items()}
    return Operator(layer.symbol, encoded, name=name, dtype=layer.dtype), tensors[0] if len(tensors) == 1 else tensors


def _encode(value: Any, tensors: list[Any], layer: str) -> Any:
    """An argument as JSON; its symbolic tensors are appended to `tensors`."""
    if hasattr(value, "_keras_history"):  # a symbolic tensor
        tensors.append(value)
        return {_TENSOR: len(tensors) - 1}
    if isinstance(value, (list, tuple, tf.TensorShape)):
        return [_encode(v, tensors, layer) for v in (value.as_list() if isinstance(value, tf.TensorShape) else value)]
    if isinstance(value, dict) and set(value) == {"start", "stop", "step"}:  # how Keras keeps a slice
        return {_SLICE: [_encode(value[k], tensors, layer) for k in ("start", "stop", "step")]}
    if isinstance(value, slice):
        return {_SLICE: [_encode(v, tensors, layer) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {_ELLIPSIS: True}
    if isinstance(value, tf.DType):
        return {_DTYPE: value.name}
    if isinstance(value, (np.ndarray, np.generic, tf.Tensor)):
        array = np.asarray(value)
        return {_ARRAY: array.tolist(), _DTYPE: array.dtype.name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise EdgeError(f"layer {layer!r}: an argument of type {type(value).__name__} can't be kept; give numbers or arrays, or write a layer")


def _decode(value: Any, tensors: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_decode(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    if _TENSOR in value:
        return tensors[value[_TENSOR]]
    if _SLICE in value:
        return slice(*_decode(value[_SLICE], tensors))
    if _ELLIPSIS in value:
        return Ellipsis
    if _ARRAY in value:
        return tf.constant(value[_ARRAY], value[_DTYPE])
    return tf.as_dtype(value[_DTYPE])

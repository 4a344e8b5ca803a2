"""A new model from a model's layer calls, some of them replaced.

def replace(layer, inputs, kwargs):
    if isinstance(layer, tf_keras.layers.Dense) and layer.name == "big":
        return two_small_ones(layer)(inputs)
    return None  # the layer's own twin is called

smaller = rebuild(model, replace)
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.graph.names import is_nested, unique_names
from tfx_edge.optimize.graph.operator import as_operator, is_operator
from tfx_edge.optimize.half_precision import float32_config, half_layers
from tfx_edge.optimize.model_copy import check_kind, twin
from tfx_edge.schemas import EdgeError

Layer: TypeAlias = tf_keras.layers.Layer

# (layer of the flat original, its first argument in the new model, the other arguments) to the call's outputs, or None
Replace = Callable[[Layer, Any, dict[str, Any]], Any]


def is_flat(model: tf_keras.Model) -> bool:
    """Whether a model holds neither nested models nor operator layers nor ones that compute in 16 bits: what `rebuild` gives."""
    return not any(is_nested(layer) or is_operator(layer) for layer in model.layers) and not any(half_layers(model))


def rebuild(model: tf_keras.Model, replace: Replace | None = None) -> tf_keras.Model:
    """Makes a flat model with the same inputs, outputs and weights, calling `replace` in place of each layer call.

    Nested models are flattened first, their layers' names made unique, operators between layers become `Operator` layers, and layers
    that compute in 16 bits do so in float32; so `replace` sees single layers with the names that the result has. A model without
    these is walked as it is.

    Args:
        model: functional or Sequential Keras 2, built; stays as it is.
        replace: gets the original layer, with its weights, and the symbolic inputs of the new call; returns what takes the place of
            the call's outputs, or None to call the layer's twin (a new layer with the same config, weights and name). It is called
            once for each call of a layer, in the order of the graph: for a layer that is called several times, call the same new
            layer again. New layers need names that no other layer has; the replaced layer's own is free.

    Returns:
        A functional model that shares nothing with the given one, with the same input and output names in the same order and
        structure; not compiled.

    Raises:
        EdgeError: `check_kind` refuses the model, a layer can't be made again from its config or called again, or the model has
            losses or metrics on tensors inside (`model.add_loss(tensor)`).
    """
    check_kind(model)
    flat = model if is_flat(model) and replace is not None else _Walk(model, None).result()
    return flat if replace is None else _Walk(flat, replace).result()


class _Walk:
    def __init__(self, model: tf_keras.Model, replace: Replace | None) -> None:
        self._model, self._replace = model, replace
        self._names = unique_names(model)
        self._twins: dict[int, tuple[Layer, Layer]] = {}

    def result(self) -> tf_keras.Model:
        model = self._model
        inputs = [_input_like(layer) for layer in model._input_layers]
        outputs = self._run(model, inputs, None)
        structure = getattr(model, "_nested_inputs", model.inputs)
        rebuilt = tf_keras.Model(
            tf.nest.pack_sequence_as(structure, inputs), tf.nest.pack_sequence_as(model._nested_outputs, outputs), name=model.name
        )
        if rebuilt.output_names != model.output_names:
            named = [
                tensor if have == want else tf_keras.layers.Activation("linear", name=want, dtype=tensor.dtype)(tensor)
                for tensor, have, want in zip(outputs, rebuilt.output_names, model.output_names, strict=True)
            ]
            rebuilt = tf_keras.Model(rebuilt.input, tf.nest.pack_sequence_as(model._nested_outputs, named), name=model.name)
        for layer, copy in self._twins.values():
            _copy_state(layer, copy)
        return rebuilt

    def _run(self, model: tf_keras.Model, inputs: list[Any], training: bool | None) -> list[Any]:
        """Calls the layers of a model, and of those nested in it, on new tensors."""
        values = {id(old): new for old, new in zip(model.inputs, inputs, strict=True)}
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                if depth < 0:
                    raise EdgeError(
                        f"model {model.name!r}: layer {node.layer.name!r} adds a loss or metric on a tensor inside of the model, "
                        "which can't be carried over; put it into compile, or save the model without it"
                    )
                if node.is_input:
                    continue
                first, kwargs = _arguments(node, values)
                outputs = self._call(node.layer, first, kwargs, training)
                for old, new in zip(tf.nest.flatten(node.outputs), tf.nest.flatten(outputs), strict=True):
                    values[id(old)] = new
        return [values[id(tensor)] for tensor in model.outputs]

    def _call(self, layer: Layer, inputs: Any, kwargs: dict[str, Any], training: bool | None) -> Any:
        if is_nested(layer) and kwargs.keys() <= {"training"}:
            flat = self._run(layer, layer._flatten_to_reference_inputs(inputs), kwargs.get("training", training))
            return tf.nest.pack_sequence_as(layer._nested_outputs, flat)
        if training is not None and layer._call_spec.expects_training_arg:
            kwargs = {"training": training, **kwargs}  # what was given to the nested model counts for the layers in it
        outputs = self._replace(layer, inputs, kwargs) if self._replace is not None else None
        return self._call_twin(layer, inputs, kwargs) if outputs is None else outputs

    def _call_twin(self, layer: Layer, inputs: Any, kwargs: dict[str, Any]) -> Any:
        name = self._names.get(id(layer), layer.name)
        try:
            if is_operator(layer):
                operator, inputs = as_operator(layer, name, inputs, kwargs)
                return self._twins.setdefault(id(layer), (layer, operator))[1](inputs)
            if id(layer) not in self._twins:
                self._twins[id(layer)] = (layer, twin(layer, **{**float32_config(layer.get_config()), "name": name}))
            return self._twins[id(layer)][1](inputs, **kwargs)
        except EdgeError:
            raise
        except Exception as error:  # a layer's from_config or call raises anything
            raise EdgeError(
                f"model {self._model.name!r}: layer {layer.name!r} ({type(layer).__name__}) can't be made again ({one_line(error)}); "
                "a custom layer needs get_config and tf_keras.saving.register_keras_serializable"
            ) from error


def _input_like(layer: Layer) -> Any:
    return tf_keras.layers.InputLayer(**layer.get_config()).output


def _arguments(node: Any, values: dict[int, Any]) -> tuple[Any, dict[str, Any]]:
    """The first argument of a layer call and the others by name, with the new model's tensors for the old."""
    spec = node.layer._call_spec
    first, rest, named = spec.split_out_first_arg(node.call_args, node.call_kwargs)
    others = {**dict(zip(spec.arg_names[1:], rest, strict=False)), **named}
    moved: tuple[Any, dict[str, Any]] = tf.nest.map_structure(lambda value: values.get(id(value), value), (first, others))
    return moved


def _copy_state(layer: Layer, copy: Layer) -> None:
    """Weights, and what preprocessing layers keep beside them."""
    if hasattr(layer, "set_vocabulary") and getattr(layer, "input_vocabulary", layer) is None:
        copy.set_vocabulary(layer.get_vocabulary(include_special_tokens=False))
    copy.set_weights(layer.get_weights())
    if hasattr(copy, "finalize_state"):  # Normalization computes from its weights what it computes with
        copy.finalize_state()

"""A Keras model's twin: the same layers, weights and compile config, and nothing shared."""

from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.error_text import one_line
from tfx_edge.schemas import EdgeError

_EMULATING = ("QuantizeLayer", "QuantizeWrapper", "QuantizeWrapperV2")  # tfmot's, by name: importing it takes seconds


def check_kind(model: Any) -> None:
    """Checks that a model is one whose layers can be copied and replaced: Keras 2, functional or Sequential, and built.

    Raises:
        EdgeError: it is something else; the text says what.
    """
    wanted = "expected a Keras 2 (tf_keras) functional or Sequential model"
    if not isinstance(model, tf_keras.Model):
        raise EdgeError(f"model of type {type(model).__module__}.{type(model).__name__}: {wanted}; rebuild it with the layers of tf_keras")
    if isinstance(model, tf_keras.Sequential) and not model.built:
        raise EdgeError(f"model {model.name!r}: a Sequential model without a known input shape; give its first layer an input_shape")
    if not model._is_graph_network:  # Keras tells it nowhere else
        raise EdgeError(
            f"model {model.name!r}: a subclassed model ({type(model).__name__}), whose layers can't be replaced; {wanted}; "
            "rebuild it with the functional API"
        )
    for layer in model.layers:
        if type(layer).__name__ in _EMULATING:
            raise EdgeError(
                f"model {model.name!r}: it emulates int8 already (layer {layer.name!r}); do this before quantization-aware training, "
                "on the float model"
            )


def copy_model(model: tf_keras.Model) -> tf_keras.Model:
    """Copies layers and weights; the copy is not compiled, see `compile_like`.

    Args:
        model: functional or Sequential, built.

    Raises:
        EdgeError: `check_kind` refuses the model, or a layer can't be made again from its config.
    """
    check_kind(model)
    try:
        copy = tf_keras.models.clone_model(model, clone_function=twin)
    except Exception as error:  # a layer's from_config raises anything
        raise EdgeError(
            f"model {model.name!r}: a layer can't be copied from its config ({one_line(error)}); "
            "a custom layer needs get_config and tf_keras.saving.register_keras_serializable"
        ) from error
    copy.set_weights(model.get_weights())
    for layer in copy.layers:
        if isinstance(layer, tf_keras.layers.Normalization):
            layer.finalize_state()  # it computes with what it makes of its weights here
    return copy


def twin(layer: tf_keras.layers.Layer, /, **changes: Any) -> tf_keras.layers.Layer:
    """A new layer of the same config and name, without weights, but for the changes to its config."""
    made = type(layer).from_config({**layer.get_config(), **changes})
    made._name = changes.get("name", layer.name)  # the config that Keras makes up for a layer without get_config has none
    return made


def output_keys(model: tf_keras.Model) -> list[str]:
    """The names by which Keras takes losses, metrics and labels, in the order of `model.outputs`: a dict's keys, else the layers'."""
    structure = getattr(model, "_nested_outputs", None)
    if isinstance(structure, dict) and len(structure) == len(model.outputs):
        return sorted(structure)  # as tf.nest has them, and `model.outputs` with it
    return list(model.output_names)


def compile_arguments(model: tf_keras.Model) -> dict[str, Any]:
    """What a model was compiled with, as fresh objects: optimizer, loss and metrics without their state; empty if it never was.

    Losses and metrics of the user's own need no registration: the model holds them.

    Raises:
        EdgeError: the loss or a metric can't be made again from its config.
    """
    config = model.get_compile_config()
    try:
        arguments: dict[str, Any] = tf_keras.saving.deserialize_keras_object(config, _own_objects(model)) if config else {}
    except Exception as error:  # a loss's from_config raises anything
        raise EdgeError(
            f"model {model.name!r}: its loss, metrics or optimizer can't be made again from their config ({one_line(error)}); "
            "decorate yours with tf_keras.saving.register_keras_serializable, or save the model uncompiled and name a loss in the config"
        ) from error
    return arguments


def _own_objects(model: tf_keras.Model) -> dict[str, Any]:
    """The functions and classes of a model's losses and metrics by the names in its compile config."""
    compiled = model._get_compile_args(user_metrics=True)
    objects = [o for o in tf.nest.flatten([compiled["loss"], compiled["metrics"], compiled["weighted_metrics"]]) if callable(o)]
    named = {getattr(o, "__name__", type(o).__name__): o if hasattr(o, "__name__") else type(o) for o in objects}
    return {name: o for name, o in named.items() if not o.__module__.startswith(("keras.", "tf_keras."))}


def largest_difference(first: Any, second: Any) -> float:
    """Of two models' outputs on the same inputs, single tensors or nested alike."""
    pairs = zip(tf.nest.flatten(first), tf.nest.flatten(second), strict=True)
    return max(float(tf.reduce_max(tf.abs(a - b))) for a, b in pairs)


def compile_like(model: tf_keras.Model, reference: tf_keras.Model, batch: tf.data.Dataset) -> None:
    """Compiles a model as another was, with an optimizer that has not stepped yet; leaves it uncompiled where the other is.

    Args:
        model: the one to compile.
        reference: the one to look at; what it has by the names of its outputs goes to the model's in their order.
        batch: one batch of (inputs, label). Which formula "accuracy" means depends on the label's shape: a model that has seen
            no label is saved with the wrong one (on integer labels, categorical instead of sparse categorical accuracy).
    """
    arguments = compile_arguments(reference)
    if arguments:
        names = dict(zip(output_keys(reference), output_keys(model), strict=True))
        for key in ("loss", "loss_weights", "metrics", "weighted_metrics"):
            if isinstance(arguments.get(key), dict):
                arguments[key] = {names.get(name, name): value for name, value in arguments[key].items()}
        model.compile(**arguments)
        model.evaluate(batch, verbose=0)
        model.reset_metrics()
    else:
        model._is_compiled, model.optimizer = False, None  # it may have been trained with a loss that a config named

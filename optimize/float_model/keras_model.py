"""Keras 2 SavedModels, as `model.save` writes them, with or without a transform layer attached."""

import os
from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize import graph  # noqa: F401 - registers our layers, which a saved model may hold
from tfx_edge.optimize.float_model.model import FloatModel, named_spec
from tfx_edge.optimize.model_copy import check_kind
from tfx_edge.schemas import Signature


def has_keras_metadata(path: str) -> bool:
    """Whether a SavedModel folder was written by Keras 2."""
    return bool(tf.io.gfile.exists(os.path.join(path, "keras_metadata.pb")))


def load_keras_model(path: str) -> tf_keras.Model | None:
    """Loads a SavedModel as a clean functional model, or None when it isn't functional (a subclassed model).

    A transform layer that TFX's examples attach to their models is among the loaded model's layers, and with it neither
    cloning nor tfmot works. A model made anew from the inputs and outputs has the layers between them alone, shared with
    the loaded one.
    """
    return _anew(tf_keras.models.load_model(path))


def functional(loaded: Any) -> tf_keras.Model:
    """A loaded model as a clean functional one.

    Raises:
        EdgeError: it is a subclassed model, or one without a known input shape.
    """
    check_kind(loaded)
    return _anew(loaded)


def _anew(loaded: Any) -> tf_keras.Model | None:
    if not getattr(loaded, "inputs", None) or not isinstance(loaded, (tf_keras.Sequential, tf_keras.src.engine.functional.Functional)):
        return None
    model = tf_keras.Model(loaded.inputs, loaded.outputs, name=loaded.name)
    config = loaded.get_compile_config()
    if config is not None:
        model.compile_from_config(config)
    return model


def from_keras_model(model: tf_keras.Model) -> FloatModel:
    """Wraps a functional Keras 2 model."""
    names = list(model.input_names)
    output_names = list(model.output_names)

    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs: Any = model([features[n] for n in names] if len(names) > 1 else features[names[0]], training=False)
        return dict(zip(output_names, tf.nest.flatten(outputs), strict=True))

    signature = Signature(
        inputs=tuple(named_spec(n, t) for n, t in zip(names, model.inputs, strict=True)),
        outputs=tuple(named_spec(n, t) for n, t in zip(output_names, model.outputs, strict=True)),
    )
    return FloatModel(signature, function, model.variables, model)

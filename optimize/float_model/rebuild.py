"""A Keras model for weights that were saved without Keras metadata, built by the user's `model_fn`."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.float_model.model import FloatModel
from tfx_edge.schemas import EdgeError, TensorSpec

_TOLERANCE = 1e-5


def rebuild(saved: FloatModel, model_fn: str) -> FloatModel:
    """Calls the user's function, loads the saved weights into its model by name, and checks that outputs are equal.

    Args:
        saved: the model as loaded, without a Keras model.
        model_fn: import path `package.module.function` of a function without arguments that returns the functional Keras 2
            model as it was before training, compiled or not.

    Raises:
        EdgeError: the path can't be imported, a weight has no counterpart, or the outputs differ.
    """
    model = _call(model_fn)
    values = {_plain(v.name): v for v in saved.resources if isinstance(v, tf.Variable) and v.dtype.is_floating}
    for weight in model.weights:
        value = values.get(_plain(weight.name))
        if value is None or value.shape != weight.shape:
            have = ", ".join(f"{n} {tuple(v.shape)}" for n, v in sorted(values.items()))
            raise EdgeError(
                f"model_fn {model_fn}: its weight {_plain(weight.name)} {tuple(weight.shape)} isn't among the saved ones ({have}); "
                "name and size the layers as the Trainer's model does"
            )
        weight.assign(value)
    rebuilt = from_keras_model(model)
    if sorted(rebuilt.signature.input_names) != sorted(saved.signature.input_names):
        raise EdgeError(
            f"model_fn {model_fn}: inputs {', '.join(rebuilt.signature.input_names)}, the saved model takes "
            f"{', '.join(saved.signature.input_names)}; give the inputs the names of the transformed features"
        )
    batch = _random_batch(saved.signature.inputs)
    outputs = zip(rebuilt.predict(batch).values(), saved.predict(batch).values(), strict=True)
    difference = max(float(np.abs(h - w).max()) for h, w in outputs)
    if not difference <= _TOLERANCE:
        raise EdgeError(f"model_fn {model_fn}: with the saved weights its outputs differ by {difference}; build the model that was trained")
    return rebuilt


def _call(model_fn: str) -> tf_keras.Model:
    module, _, name = model_fn.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise EdgeError(f"model_fn {model_fn!r}: {error}; expected an import path such as package.module.build_model") from error
    model = function()
    if not isinstance(model, tf_keras.Model) or not getattr(model, "inputs", None):
        kind = f"{type(model).__module__}.{type(model).__name__}"
        raise EdgeError(f"model_fn {model_fn}: returned {kind}; expected a functional tf_keras.Model")
    return model


def _plain(name: str) -> str:
    return name.removesuffix(":0")


def _random_batch(inputs: Sequence[TensorSpec], size: int = 8) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        s.name: generator.normal(size=(size, *(d or 1 for d in s.shape[1:]))).astype(s.dtype)
        if np.dtype(s.dtype).kind == "f"
        else generator.integers(0, 2, (size, *(d or 1 for d in s.shape[1:]))).astype(s.dtype)
        for s in inputs
    }

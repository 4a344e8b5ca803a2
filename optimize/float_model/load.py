"""Loads whatever a Trainer saved."""

from typing import Any

import tensorflow as tf

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.finite import check_finite
from tfx_edge.optimize.float_model.callable_object import from_callable
from tfx_edge.optimize.float_model.keras_config import model_from_config
from tfx_edge.optimize.float_model.keras_model import from_keras_model, functional, has_keras_metadata, load_keras_model
from tfx_edge.optimize.float_model.model import FloatModel
from tfx_edge.optimize.float_model.model_file import is_model_file, load_model_file
from tfx_edge.optimize.float_model.rebuild import rebuild
from tfx_edge.optimize.float_model.signature import SERVING, default_signature, from_signature, takes_examples
from tfx_edge.optimize.float_model.signature_cut import cut_behind_transform
from tfx_edge.schemas import EdgeError

_CURE = "save it with tfx_edge.pipelines.save_model(model, fn_args) in run_fn"


def load_float_model(
    path: str,
    transform_graph: str | None = None,
    model_fn: str | None = None,
    signature: str | None = None,
    function_only: bool = False,
) -> FloatModel:
    """Loads a SavedModel or a model file as a function on named transformed features.

    A `.keras` or `.h5` file is loaded with Keras, and converted to Keras 2 where Keras 3 wrote it. Of a SavedModel are tried in this
    order: a Keras 2 model; an object that can be called on the features; a serving signature on named features; a serving signature
    on serialized tf.Examples, cut behind its transform layer. The serving signature is `serving_default`, or the only one.

    Args:
        path: a SavedModel folder, or a `.keras` or `.h5` file.
        transform_graph: folder of the TransformGraph artifact; needed where the signature must be cut.
        model_fn: import path of a function that builds the Keras model, for a SavedModel without Keras metadata.
        signature: take this signature and nothing else, on named features or on serialized tf.Examples.
        function_only: the Keras model isn't needed, compiled least of all, which loads most Keras models five times faster.

    Raises:
        EdgeError: no way fits, or a weight is NaN or infinite; the text names the model and the fix.
    """
    if is_model_file(path):
        model = from_keras_model(functional(load_model_file(path)))
        check_finite(model.resources, f"the model at {path}")
        return model
    if not tf.saved_model.contains_saved_model(path):
        raise EdgeError(f"no SavedModel at {path}; expected a folder with saved_model.pb, as a Trainer writes it")
    try:
        model = _load(path, transform_graph, function_only) if signature is None else _load_signature(path, transform_graph, signature)
    except (OSError, tf.errors.OpError) as error:  # what TensorFlow raises on files that are damaged or gone
        raise EdgeError(f"the model at {path} can't be read: {one_line(error)}; save it again") from error
    if model.keras_model is None and model_fn is not None:
        model = rebuild(model, model_fn)
    check_finite((v for v in model.resources if isinstance(v, tf.Variable)), f"the model at {path}")
    return model


def _load(path: str, transform_graph: str | None, function_only: bool) -> FloatModel:
    if has_keras_metadata(path):
        keras_model = (model_from_config(path) if function_only else None) or load_keras_model(path)
        if keras_model is not None:
            return from_keras_model(keras_model)
    loaded = tf.saved_model.load(path)
    name = default_signature(loaded)
    model = from_callable(loaded) or (from_signature(loaded, name) if name else None)
    if model is not None and (transform_graph is None or _takes(model, transform_graph)):
        return model
    signature = loaded.signatures[name] if name else None
    if signature is None or not takes_examples(signature):
        inputs = f"its inputs are {', '.join(model.signature.input_names)}" if model else f"it has no signature {SERVING!r}"
        there = ", ".join(sorted(loaded.signatures)) if model is None else ""
        cure = f"of {there}, name those to export in ConversionConfig.signatures, or {_CURE}" if there else _CURE
        raise EdgeError(f"the model at {path} can't be called on the transformed features: {inputs}; {cure}")
    return _cut(path, loaded, signature, transform_graph)


def _load_signature(path: str, transform_graph: str | None, name: str) -> FloatModel:
    loaded = tf.saved_model.load(path)
    if name not in loaded.signatures:
        raise EdgeError(f"the model at {path} has no signature {name!r}; it has {', '.join(sorted(loaded.signatures))}; name one of these")
    model = from_signature(loaded, name)
    return _cut(path, loaded, loaded.signatures[name], transform_graph) if model is None else model


def _cut(path: str, loaded: Any, signature: Any, transform_graph: str | None) -> FloatModel:
    if transform_graph is None:
        raise EdgeError(f"the model at {path} takes serialized tf.Examples; give transform_graph, to cut it behind Transform, or {_CURE}")
    return cut_behind_transform(loaded, signature, transform_graph)


def _takes(model: FloatModel, transform_graph: str) -> bool:
    """Whether a model's inputs are transformed features, by their names."""
    import tensorflow_transform as tft

    return set(model.signature.input_names) <= set(tft.TFTransformOutput(transform_graph).transformed_feature_spec())

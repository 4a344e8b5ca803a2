"""Layers that no device runs and that no rewrite mends, each with what to do instead."""

from collections.abc import Iterator
from typing import TypeAlias

import tf_keras

from tfx_edge.optimize.graph.names import is_nested
from tfx_edge.schemas import EdgeError

Layer: TypeAlias = tf_keras.layers.Layer

_WORDS = "tft.compute_and_apply_vocabulary in Transform's preprocessing_fn, and give the model integers"
_HASHES = "tft.hash_strings in Transform's preprocessing_fn, and give the model integers"
_NO_OPERATOR = {
    tf_keras.layers.StringLookup: ("works on text, which no device operator takes", _WORDS),
    tf_keras.layers.TextVectorization: ("works on text, which no device operator takes", _WORDS),
    tf_keras.layers.Hashing: ("hashes, for which no device operator is there", _HASHES),
    tf_keras.layers.HashedCrossing: (
        "hashes, for which no device operator is there",
        "tft.bucketize and arithmetic in Transform's preprocessing_fn",
    ),
}


def refuse_impossible(model: tf_keras.Model) -> None:
    """Checks that every layer can be brought to a device.

    Args:
        model: functional or Sequential; its nested models' layers are looked at too.

    Raises:
        EdgeError: a layer can't; the text names all of them and the cure of each.
    """
    problems = [f"layer {layer.name!r} ({type(layer).__name__}) {why}; use {cure}" for layer, why, cure in _impossible(model)]
    if problems:
        raise EdgeError(f"model {model.name!r} can't be brought to a device: {'; '.join(problems)}")


def _impossible(model: tf_keras.Model) -> Iterator[tuple[Layer, str, str]]:
    for layer in model.layers:
        if is_nested(layer):
            yield from _impossible(layer)
        elif type(layer) in _NO_OPERATOR:
            yield layer, *_NO_OPERATOR[type(layer)]
        elif isinstance(layer, tf_keras.layers.InputLayer):
            if layer.sparse or layer.ragged:
                yield layer, "is a sparse or ragged input", "a dense input of fixed length; pad in Transform's preprocessing_fn"
            elif layer.dtype == "string":
                yield layer, "is an input of text", _WORDS
        elif isinstance(layer, (tf_keras.layers.IntegerLookup, tf_keras.layers.CategoryEncoding, tf_keras.layers.Discretization)):
            reason = _settings(layer)
            if reason:
                yield layer, reason, "tft in Transform's preprocessing_fn, and give the model the result"


def _settings(layer: Layer) -> str:
    """Which setting of a layer that is rewritten otherwise can't be; empty if none."""
    if getattr(layer, "output_mode", None) == "tf_idf":
        return "has output_mode 'tf_idf', which isn't rewritten"
    if isinstance(layer, tf_keras.layers.IntegerLookup):
        if layer.num_oov_indices != 1:
            return f"has num_oov_indices={layer.num_oov_indices}: more than one hashes and none stops the program on an unknown value"
        if layer.invert:
            return "has invert=True, which isn't rewritten"
        tokens = layer.get_vocabulary(include_special_tokens=False)
        if any(not -(2**31) <= int(token) < 2**31 for token in tokens):
            return "has tokens beyond 32 bits"
    return ""

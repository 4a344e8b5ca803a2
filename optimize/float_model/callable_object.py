"""SavedModels without Keras metadata whose root can be called on the transformed features.

`tf.saved_model.save` of a Keras 2 model writes such a one: the call's concrete functions are there, and their structured
signature says whether the model takes a list, a dict or one tensor.
"""

from typing import Any

import tensorflow as tf

from tfx_edge.optimize.float_model.model import FloatModel, KeepAlive, fixed_batch, named_spec
from tfx_edge.schemas import Signature


def from_callable(loaded: Any) -> FloatModel | None:
    """Wraps a loaded object, or returns None when it can't be called on named tensors."""
    if not callable(loaded) or not hasattr(loaded.__call__, "concrete_functions"):
        return None
    found = []
    for concrete in loaded.__call__.concrete_functions:
        arguments, keywords = concrete.structured_input_signature
        names = _names(arguments[0]) if arguments and not _trains(arguments, keywords) else None
        if names is not None:
            found.append((concrete, dict(zip(names, tf.nest.flatten(arguments[0]), strict=True))))
    for_any_batch = [each for each in found if all(spec.shape[0] is None for spec in each[1].values())]
    return _wrap(loaded, *(for_any_batch or found)[0]) if found else None


def _trains(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether the function was traced for training; Keras passes the flag as the second argument or by name."""
    return any(a is True for a in arguments[1:]) or keywords.get("training") is True


def _names(inputs: Any) -> list[str] | None:
    """Feature names of the flattened inputs: keys of a dict, names of the specs otherwise."""
    if isinstance(inputs, dict):
        names = sorted(inputs)
        return names if all(_is_batch(inputs[k]) for k in names) else None
    specs = tf.nest.flatten(inputs)
    if not all(_is_batch(s) and s.name and s.dtype != tf.string for s in specs):
        return None
    names = [s.name.split("/")[-1] for s in specs]
    return names if len(set(names)) == len(names) else None


def _is_batch(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec) and bool(spec.shape.rank)


def _wrap(loaded: Any, concrete: Any, specs: dict[str, tf.TensorSpec]) -> FloatModel:
    arguments, keywords = concrete.structured_input_signature

    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = tf.nest.pack_sequence_as(arguments[0], [features[n] for n in specs])
        # Not by the object itself, which gives a batch of any size to a trace for one size, where that is its first.
        return name_outputs(concrete(inputs, *arguments[1:], **keywords))

    traced = tf.function(function)
    batch = fixed_batch(specs)
    given = traced.get_concrete_function(**{n: tf.TensorSpec([batch, *s.shape[1:]], s.dtype, name=n) for n, s in specs.items()})
    signature = Signature(
        inputs=tuple(named_spec(n, s) for n, s in specs.items()),
        outputs=tuple(named_spec(n, t) for n, t in given.structured_outputs.items()),
    )
    # What Keras saved lists its variables, a plain tf.Module doesn't.
    variables = loaded.variables if hasattr(loaded, "variables") else concrete.variables
    return FloatModel(signature, traced, (*variables, KeepAlive(loaded)), batch_size=batch)


def name_outputs(outputs: Any) -> dict[str, tf.Tensor]:
    """Outputs by name: a dict's own keys, `output_0`, `output_1` ... otherwise, as SavedModel signatures have it."""
    if isinstance(outputs, dict):
        return {k: outputs[k] for k in sorted(outputs)}
    return {f"output_{i}": t for i, t in enumerate(tf.nest.flatten(outputs))}

"""Raw features to what a model takes, out of Transform's own graph.

The graph that Transform saved is the source, whatever a Trainer saved: it is what made the training examples, it knows its raw features by
name, and it is there for models too that have no serving signature, or none that is cut easily.
"""

import re
from collections.abc import Sequence

import tensorflow as tf

from tfx_edge.optimize.float_model import FloatModel
from tfx_edge.optimize.raw_features.device_form import device_spec, to_transform
from tfx_edge.optimize.raw_features.transform_graph import TransformGraph
from tfx_edge.schemas import EdgeError, Signature, TensorSpec

_CURE = "keep features 'transformed', or"


def preprocessing(graph: TransformGraph, takes: Sequence[TensorSpec]) -> FloatModel:
    """The function that a device needs before a model.

    Args:
        graph: of the Transform that made the model's examples.
        takes: the model's inputs, named as transformed features, with real dtypes; all with the same batch, a number or None.

    Returns:
        A function of those raw features alone that the model depends on, in the form in which a device gives them
        (`device_form.py`). Its outputs have the names, shapes and dtypes of `takes`.

    Raises:
        EdgeError: an input is no transformed feature or of another kind or size, or depends on a raw feature that a device can't
            give.
    """
    for spec in takes:
        _check(spec, graph)
    needed = graph.needed({spec.name for spec in takes})
    for name in needed:
        if graph.raw[name].dtype == tf.string:
            raise _refuse_text(name, graph, takes)
    batches = {spec.shape[0] for spec in takes}
    batch = next(iter(batches)) if len(batches) == 1 else None

    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        transformed = graph.layer({name: to_transform(graph.raw[name], features[name]) for name in needed})
        return {spec.name: _as(spec, transformed[spec.name]) for spec in takes}

    inputs = tuple(device_spec(name, graph.raw[name], batch) for name in needed)
    return FloatModel(Signature(inputs=inputs, outputs=tuple(takes)), tf.function(function), (graph.layer,))


def blame(refusal: str, graph: TransformGraph, takes: Sequence[TensorSpec]) -> EdgeError:
    """What to raise when the preprocessing can't be converted: names the features that the refused operators are of.

    Args:
        refusal: what the converter said, with TensorFlow's operators in it as `tf.Name`.
        graph: as `preprocessing` got it.
        takes: the same.
    """
    refused = set(re.findall(r"\btf\.(\w+)", refusal))
    by_feature = {spec.name: refused & graph.operators(spec.name) for spec in takes}
    found = [_made(name, operators, graph) for name, operators in by_feature.items() if operators]
    if not found:
        return EdgeError(f"features 'raw': {refusal}; or keep features 'transformed'")
    return EdgeError(
        f"features 'raw': Transform makes {'; '.join(found)}, which LiteRT has not; {_CURE} compute it from numbers by other operators in "
        "preprocessing_fn"
    )


def _refuse_text(name: str, graph: TransformGraph, takes: Sequence[TensorSpec]) -> EdgeError:
    by_feature = {spec.name: graph.operators(spec.name, on_text=True) for spec in takes if name in graph.needed({spec.name})}
    found = "; ".join(_made(feature, operators, graph) for feature, operators in by_feature.items())
    return EdgeError(
        f"features 'raw': Transform makes {found}, and LiteRT has no operators on text, as {name!r} is; {_CURE} map it to numbers before "
        "the pipeline reads it"
    )


def _made(feature: str, operators: set[str], graph: TransformGraph) -> str:
    return f"{feature!r} from {', '.join(map(repr, graph.needed({feature})))} by {', '.join(sorted(operators))}"


def _check(spec: TensorSpec, graph: TransformGraph) -> None:
    feature = graph.transformed.get(spec.name)
    if feature is None:
        raise EdgeError(
            f"features 'raw': the model takes {spec.name!r}, Transform gives {', '.join(map(repr, sorted(graph.transformed)))}; name the "
            "model's inputs as the transformed features"
        )
    if not isinstance(feature, tf.io.FixedLenFeature):
        raise EdgeError(
            f"features 'raw': Transform gives {spec.name!r} as {type(feature).__name__}; make it dense, of one shape, in preprocessing_fn"
        )
    want, have = tf.TensorShape(spec.shape[1:]), tf.TensorShape(feature.shape)
    kinds = {"integer" if dtype.is_integer else dtype.name for dtype in (tf.as_dtype(spec.dtype), feature.dtype)}
    if len(kinds) > 1 or (want.is_fully_defined() and want.num_elements() != have.num_elements()):
        raise EdgeError(
            f"features 'raw': the model takes {spec.name!r} as {spec.dtype} {want}, Transform gives {feature.dtype.name} {have}; give the "
            "transform_graph that the model was trained with"
        )


def _as(spec: TensorSpec, values: tf.Tensor) -> tf.Tensor:
    """A transformed feature as the model takes it: `[n]` as `[n, 1]`, int64 as int32."""
    shape = tf.TensorShape(spec.shape[1:])
    if shape.is_fully_defined() and values.shape[1:] != shape:
        values = tf.reshape(values, [-1, *shape])
    return tf.cast(values, spec.dtype)

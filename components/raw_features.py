"""Transform's preprocessing inside an edge model, so that a device feeds it raw features."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.litert import inspect
from tfx_edge.litert.join import join
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.float_model import FloatModel, raw_examples
from tfx_edge.optimize.raw_features import TransformGraph, blame, device_features, plausible_features, preprocessing
from tfx_edge.schemas import EdgeError, TensorRanges, TensorSpec

_NAME = "Transform's preprocessing"
_TOLERANCE = 1e-4  # of the largest value: TensorFlow's kernels and LiteRT's round their own way
_NORMAL = 3.0  # standard deviations


def with_preprocessing(model: bytes, graph: TransformGraph | None) -> bytes:
    """Puts Transform's preprocessing in front of a flatbuffer on transformed features.

    The preprocessing is float32, as Transform computes it; the model inside stays as it is. The same model and graph give the same
    bytes.

    Args:
        model: a flatbuffer with one signature, quantized or not.
        graph: of the Transform before the Trainer.

    Returns:
        A flatbuffer whose inputs are the raw features that the model depends on: `[n, *shape]` as the schema has them, and `[n, 1]`
        those that an example may lack, where NaN, or the smallest int64, stands for a missing value.

    Raises:
        EdgeError: there is no transform graph, it isn't the model's, it needs what a flatbuffer can't compute, text above all, or
            LiteRT computes something else. The text names the feature.
    """
    if graph is None:
        raise EdgeError("features 'raw' without transform_graph: there is no preprocessing to take in; give Transform's transform_graph")
    takes = _takes(Runner(model))
    function = preprocessing(graph, takes)
    try:
        converted = convert_model(function, _NAME)
    except EdgeError as error:
        raise blame(str(error), graph, takes) from error
    _compare(function, converted, graph)
    return join(converted, model, names=(_NAME, "the model"))


def golden_features(model: bytes, graph: TransformGraph, ranges: TensorRanges | None = None, runs: int = 8) -> dict[str, NDArray[Any]]:
    """Made-up raw features for golden vectors, which come out of the preprocessing as the model was calibrated for.

    Args:
        model: the flatbuffer on transformed features, as `with_preprocessing` gets it.
        graph: of the Transform before the Trainer.
        ranges: calibrated, by the model's tensor names; inputs without are taken for standard normal.
        runs: how often the model is to be run.

    Returns:
        `[n, ...]` by raw feature name, enough for so many runs; the same arguments give the same values.
    """
    runner = Runner(model)
    tensors = inspect.parse(model).subgraphs[runner.entry.subgraph].tensors
    bounds = {}
    for spec in runner.signature.inputs:
        known = ranges.ranges.get(tensors[runner.entry.inputs[spec.name]].name.decode()) if ranges else None
        if spec.scale is not None and spec.zero_point is not None:
            ends = np.iinfo(spec.dtype)
            bounds[spec.name] = (spec.scale * (ends.min - spec.zero_point), spec.scale * (ends.max - spec.zero_point))
        elif np.dtype(spec.dtype).kind == "f":
            bounds[spec.name] = (known.min, known.max) if known else (-_NORMAL, _NORMAL)
    function = preprocessing(graph, _takes(runner))
    return plausible_features(function, bounds, runs * (runner.batch_size or 1))


def _takes(runner: Runner) -> list[TensorSpec]:
    """A model's inputs as real numbers."""
    real = {"dtype": "float32", "scale": None, "zero_point": None}
    return [spec if spec.scale is None else spec.model_copy(update=real) for spec in runner.signature.inputs]


def _compare(function: FloatModel, converted: bytes, graph: TransformGraph) -> None:
    """Feeds made-up raw examples to both."""
    spec = {name: graph.raw[name] for name in function.signature.input_names}
    features = device_features(tf.io.parse_example(tf.constant(raw_examples.make(spec, count=64)), spec))
    want, have = function.predict(features), Runner(converted, name=_NAME)(features)
    for name, value in want.items():
        slack = _TOLERANCE * float(np.max(np.abs(value), initial=1.0, where=np.isfinite(value)))
        if not np.allclose(have[name], value, rtol=0, atol=slack, equal_nan=True):
            raise EdgeError(
                f"features 'raw': LiteRT computes {name!r} otherwise than Transform, by {np.nanmax(np.abs(have[name] - value)):.3g} on "
                "made-up examples; keep features 'transformed', or compute it by other operators in preprocessing_fn"
            )

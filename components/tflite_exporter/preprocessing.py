"""What Transform's graph does to the features that a model takes, as the manifest tells it."""

import math
import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from tfx_edge.optimize.float_model import FloatModel
from tfx_edge.optimize.raw_features import TransformGraph, preprocessing
from tfx_edge.schemas import EdgeError, TensorSpec
from tfx_edge.schemas.model_metadata import Normalization
from tfx_edge.schemas.preprocessing import Preprocessing, RawFeature, TransformedFeature

# Values that a raw feature is probed with: two far ends for the slope, what lies between to tell a line from anything else.
_PROBES = np.array([-1e6, -3e4, -777, -12, -2, -1, 0, 1, 2, 3, 5, 40, 900, 2e4, 1e6])
_ROUNDING = 1e-5  # of the greatest term of a value: Transform computes in float32
_DIGITS = 7  # float32 has no more


def describe_preprocessing(graph: TransformGraph, takes: Sequence[TensorSpec]) -> Preprocessing:
    """Describes the part of a transform graph that a model needs.

    The graph keeps what was analyzed as constants without a name. So a feature of one raw feature of numbers is computed for values
    over twelve orders of magnitude; where all of them lie on one line, its mean and standard deviation (or whatever stands in their
    place, as minimum and extent do for `scale_to_0_1`) follow to six digits.

    Args:
        graph: of the Transform before the Trainer.
        takes: the float model's inputs, which are transformed features.

    Raises:
        EdgeError: an input is no transformed feature.
    """
    unknown = [spec.name for spec in takes if spec.name not in graph.transformed]
    if unknown:
        raise EdgeError(
            f"the model takes {unknown[0]!r}, the transform graph at {graph.path} gives {', '.join(sorted(graph.transformed))}; "
            "give the transform_graph that the model was trained with"
        )
    domains = {feature.name: feature for feature in graph.output.transformed_metadata.schema.feature}
    features = tuple(_transformed(graph, spec, domains[spec.name]) for spec in takes)
    needed = {source for feature in features for source in feature.sources}
    schema = {feature.name: feature for feature in graph.output.raw_metadata.schema.feature}
    return Preprocessing(
        features=features,
        raw_features=tuple(_raw(name, graph.raw[name], schema[name]) for name in sorted(needed)),
        vocabularies=dict(sorted(_vocabularies(graph.output))),
    )


def _transformed(graph: TransformGraph, spec: TensorSpec, schema: Any) -> TransformedFeature:
    sources = graph.needed({spec.name})
    low, high = _bounds(schema)
    return TransformedFeature(name=spec.name, sources=sources, normalization=_normalization(graph, spec, sources), min=low, max=high)


def _normalization(graph: TransformGraph, spec: TensorSpec, sources: Sequence[str]) -> Normalization | None:
    """Mean and standard deviation of a feature that is computed value by value, (x - mean) / std."""
    if len(sources) != 1 or np.dtype(spec.dtype).kind != "f" or graph.raw[sources[0]].dtype == tf.string:
        return None
    try:
        function = preprocessing(graph, [spec])
        line = _line(function, spec.name)
        unit = 1.0 if line is None else 10.0 ** max(0, *(math.ceil(math.log10(abs(v))) for v in line if v))
        if unit > 1:  # for values of such a size the probes all lie near 0, as those of seconds since 1970 do
            line = _line(function, spec.name, unit)
    except (EdgeError, tf.errors.OpError):  # examples have different numbers of values; or it looks up or asserts, and no probe will do
        return None
    return None if line is None else Normalization(mean=(_rounded(line[0]),), std=(_rounded(line[1]),))


def _line(function: FloatModel, feature: str, unit: float = 1.0) -> tuple[float, float] | None:
    """Mean and standard deviation, where all probes in this unit lie on one line."""
    [raw] = function.signature.inputs
    examples = _probes(raw, unit)
    y = function.predict({raw.name: examples})[feature].reshape(len(examples), -1).astype(np.float64)
    x = examples.reshape(len(examples), -1).astype(np.float64)
    if x.shape != y.shape or not np.isfinite(y).all():
        return None
    offset = y[_PROBES == 0][0, 0]
    slope = (y[-1, 0] - y[0, 0]) / (x[-1, 0] - x[0, 0])
    far = np.abs(y - (slope * x + offset)) > _ROUNDING * (np.abs(slope * x) + abs(offset))
    return None if slope == 0 or far.any() else (-offset / slope, 1 / slope)


def _probes(raw: TensorSpec, unit: float) -> NDArray[Any]:
    """The probes as examples `[n, ...]` of a raw feature; their values stand in another order in each place but the first.

    So places that are mixed, as a sum over them mixes them, show.
    """
    shape = [size or 1 for size in raw.shape[1:]]
    columns = np.random.default_rng(0).permuted(np.tile(_PROBES[:, None], int(np.prod(shape))), axis=0)
    columns[:, 0] = _PROBES
    probes: NDArray[Any] = (unit * columns).reshape(len(_PROBES), *shape).astype(raw.dtype)
    return probes


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") + 0.0  # no -0.0


def _raw(name: str, spec: Any, schema: Any) -> RawFeature:
    low, high = _bounds(schema)
    fixed = isinstance(spec, tf.io.FixedLenFeature)
    return RawFeature(
        name=name,
        dtype=spec.dtype.name,
        shape=tuple(int(size) for size in spec.shape) if fixed else None,
        min=low,
        max=high,
        values=len(schema.string_domain.value) or None,
    )


def _bounds(schema: Any) -> tuple[float | None, float | None]:
    """The domain of a feature of the schema, where it has one."""
    for kind in ("int_domain", "float_domain"):
        if schema.WhichOneof("domain_info") == kind:
            domain = getattr(schema, kind)
            low, high = (float(getattr(domain, end)) if domain.HasField(end) else None for end in ("min", "max"))
            return tuple(None if end is None or not np.isfinite(end) else end for end in (low, high))  # type: ignore[return-value]
    return None, None


def _vocabularies(output: Any) -> Iterator[tuple[str, int]]:
    """Name and size of each vocabulary, whose files are the graph's assets."""
    folder = posixpath.join(output.transform_savedmodel_dir, "assets")
    for file in tf.io.gfile.listdir(folder) if tf.io.gfile.isdir(folder) else ():
        name = file.removesuffix(".tfrecord.gz")
        yield name, int(output.vocabulary_size_by_name(name))

"""What is known of a record before it is sampled: that it has what the schema promises, its stratum, its extremes."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.tfxio import tensor_representation_util

from tfx_edge.components.examples import misfit_text
from tfx_edge.schemas import EdgeError

NON_FINITE = "non_finite"
"""Tag of the records that aren't sampled, each as the names of the features that are NaN or infinite."""

_LISTS = {schema_pb2.FLOAT: "float_list", schema_pb2.INT: "int64_list", schema_pb2.BYTES: "bytes_list"}
_KINDS = {"float_list": "float", "int64_list": "integer", "bytes_list": "string"}

Values = dict[str, Any]
"""Of one record: the values of each dense feature, as a sequence, by name."""


@dataclasses.dataclass(frozen=True)
class DenseFeature:
    """A feature of a fixed number of values.

    Attributes:
        name: of the feature in a tf.Example.
        field: of a tf.Example's feature that holds the values.
        size: how many values an example has.
        default: the value that stands for those of an example without the feature; None where every example must have it.
    """

    name: str
    field: str
    size: int
    default: float | bytes | None

    @property
    def numeric(self) -> bool:
        return self.field != "bytes_list"


def dense_features(schema: schema_pb2.Schema) -> tuple[DenseFeature, ...]:
    """The dense features of a schema, by name.

    Raises:
        EdgeError: the schema gives a feature a fixed shape and doesn't say that every example has it.
    """
    types = {feature.name: feature.type for feature in schema.feature}
    try:
        representations = tensor_representation_util.InferTensorRepresentationsFromMixedSchema(schema)
    except ValueError as error:
        raise EdgeError(f"the schema of the examples: {' '.join(str(error).split())}") from error
    dense = []
    for representation in representations.values():
        if representation.WhichOneof("kind") == "dense_tensor":
            tensor = representation.dense_tensor
            kind = tensor.default_value.WhichOneof("kind")
            default = getattr(tensor.default_value, kind) if kind else None
            size = math.prod(d.size for d in tensor.shape.dim)
            dense.append(DenseFeature(tensor.column_name, _LISTS[types[tensor.column_name]], size, default))
    return tuple(sorted(dense, key=lambda feature: feature.name))


def require_feature(name: str, schema: schema_pb2.Schema) -> None:
    """Checks that a schema has a feature to stratify by.

    Raises:
        EdgeError: it has none of this name.
    """
    names = sorted(feature.name for feature in schema.feature)
    if name not in names:
        raise EdgeError(f"stratify_by {name!r}: not a feature of the schema, which has {', '.join(names)}; name one of these")


class KeyRecords(beam.DoFn):
    """Puts before each tf.Example what its strategy goes by: a stratum, scores, or nothing.

    Examples with NaN or infinity in a dense feature come out under the tag `NON_FINITE`.

    Raises, in a worker:
        EdgeError: an example lacks the feature to stratify by or a dense one, or has another number or type of values.
    """

    def __init__(
        self, dense: tuple[DenseFeature, ...], stratify_by: str | None = None, scores: Callable[[Values], Any] | None = None
    ) -> None:
        """Sets what is put before a record: the stratum by `stratify_by`, or what `scores` makes of its dense values, or nothing."""
        self.dense, self.stratify_by, self.scores = dense, stratify_by, scores

    def process(self, record: bytes) -> Iterable[Any]:
        features = tf.train.Example.FromString(record).features.feature
        values = {feature.name: _values(features, feature) for feature in self.dense}
        bad = tuple(f.name for f in self.dense if f.field == "float_list" and not np.isfinite(values[f.name]).all())
        if bad:
            yield beam.pvalue.TaggedOutput(NON_FINITE, bad)
        elif self.stratify_by is not None:
            yield _stratum(features, self.stratify_by), record
        else:
            yield self.scores(values) if self.scores else None, record


def _values(features: "tf.train.Features.FeatureEntry", feature: DenseFeature) -> Any:
    values = getattr(features[feature.name], feature.field) if feature.name in features else None
    found = () if values is None else values.value
    if len(found) == feature.size:
        return np.frombuffer(_packed(values, feature.size), "<f4") if feature.field == "float_list" and feature.size else found
    if feature.default is not None and not found:
        return [feature.default] * feature.size
    have = f"{len(found)} {_KINDS[feature.field]} values"
    raise EdgeError(f"the examples don't fit their schema: {misfit_text(feature.name, have, str(feature.size))}")


def _packed(values: tf.train.FloatList, size: int) -> bytes:
    """The floats as they are serialized, packed at the end of their message: ten times as fast as reading them one by one."""
    packed: bytes = values.SerializeToString()
    return packed[len(packed) - 4 * size :]


def _stratum(features: "tf.train.Features.FeatureEntry", name: str) -> str:
    if name in features:
        feature = features[name]
        field = feature.WhichOneof("kind")
        values = [text(value, field) for value in getattr(feature, field).value] if field else []
        if values and (field != "bytes_list" or (len(values) == 1 and not values[0].startswith("["))):
            return ", ".join(values)
        if values:
            return json.dumps(values, ensure_ascii=False)  # texts: no single one reads as several
    raise EdgeError(
        f"stratify_by {name!r}: an example has no value of it; mend the data or Transform's preprocessing_fn, "
        "so that every example has one, or stratify by another feature"
    )


def text(value: int | float | bytes, field: str) -> str:
    """A value of a tf.Example's `field` as text."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(np.float32(value) + np.float32(0)) if field == "float_list" else str(value)  # -0 and 0 are one value

"""What is known of a record before it is sampled: that it has what the schema promises, and which stratum it is in."""

import math
from collections.abc import Iterable

import apache_beam as beam
import numpy as np
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.tfxio import tensor_representation_util

from tfx_edge.components.calibration_gen.sampling import Keyed
from tfx_edge.components.examples import misfit_text
from tfx_edge.schemas import EdgeError

_LISTS = {schema_pb2.FLOAT: "float_list", schema_pb2.INT: "int64_list", schema_pb2.BYTES: "bytes_list"}
_KINDS = {"float_list": "float", "int64_list": "integer", "bytes_list": "string"}


def require_feature(name: str, schema: schema_pb2.Schema) -> None:
    """Checks that a schema has a feature to stratify by.

    Raises:
        EdgeError: it has none of this name.
    """
    names = sorted(feature.name for feature in schema.feature)
    if name not in names:
        raise EdgeError(f"stratify_by {name!r}: not a feature of the schema, which has {', '.join(names)}; name one of these")


class KeyByStratum(beam.DoFn):
    """Puts the name of its stratum before each tf.Example: the value of a feature, or nothing without one.

    Raises, in a worker:
        EdgeError: an example lacks that feature or a dense one of the schema, or has another number or type of values.
    """

    def __init__(self, schema: schema_pb2.Schema, stratify_by: str | None) -> None:
        self.dense = _dense_lists(schema)
        self.stratify_by = stratify_by

    def process(self, record: bytes) -> Iterable[Keyed]:
        features = tf.train.Example.FromString(record).features.feature
        for name, (field, want) in self.dense.items():
            have = len(getattr(features[name], field).value) if name in features else 0
            if have != want:
                kind = _KINDS[field]
                raise EdgeError(f"the examples don't fit their schema: {misfit_text(name, f'{have} {kind} values', str(want))}")
        yield self.stratum(features), record

    def stratum(self, features: "tf.train.Features.FeatureEntry") -> str:
        if self.stratify_by is None:
            return ""
        if self.stratify_by in features:
            feature = features[self.stratify_by]
            field = feature.WhichOneof("kind")
            values = [_text(value, field) for value in getattr(feature, field).value] if field else []
            if values:
                return ", ".join(values)
        raise EdgeError(
            f"stratify_by {self.stratify_by!r}: an example has no value of it; mend the data or Transform's preprocessing_fn, "
            "so that every example has one, or stratify by another feature"
        )


def _text(value: int | float | bytes, field: str) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(np.float32(value)) if field == "float_list" else str(value)


def _dense_lists(schema: schema_pb2.Schema) -> dict[str, tuple[str, int]]:
    """Dense features that have no default value, with the field of a tf.Example that holds them and how many values it must hold.

    Raises:
        EdgeError: the schema gives a feature a fixed shape and doesn't say that every example has it.
    """
    types = {feature.name: feature.type for feature in schema.feature}
    try:
        representations = tensor_representation_util.InferTensorRepresentationsFromMixedSchema(schema)
    except ValueError as error:
        raise EdgeError(f"the schema of the examples: {' '.join(str(error).split())}") from error
    dense = {}
    for representation in representations.values():
        tensor = representation.dense_tensor
        if representation.WhichOneof("kind") == "dense_tensor" and not tensor.HasField("default_value"):
            dense[tensor.column_name] = _LISTS[types[tensor.column_name]], math.prod(d.size for d in tensor.shape.dim)
    return dense

"""The schema of tf.Examples, told from the records themselves: a feature that has as many values in each of them is dense."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_metadata.proto.v0 import schema_pb2

from tfx_edge.schemas import EdgeError

RECORDS = 1000
"""How many are looked at, of all files together."""

_TYPES = {"bytes_list": schema_pb2.BYTES, "float_list": schema_pb2.FLOAT, "int64_list": schema_pb2.INT}


def infer_schema(files: Sequence[Path], shapes: Mapping[str, Sequence[int]], records: int = RECORDS) -> schema_pb2.Schema:
    """Reads the first records of some files.

    Args:
        files: TFRecord files of tf.Examples; those that end with .gz are gzipped.
        shapes: of the model's inputs, without the batch. A feature of the same name and number of values gets it; any other has as many
            values as it has, a single one no dimension.
        records: how many to look at.

    Returns:
        Every feature with its type: dense where all records have the same number of values, else of varying length.

    Raises:
        EdgeError: there are no records, one isn't a tf.Example, or a feature has two types.
    """
    lengths: dict[tuple[str, str], list[int]] = {}
    seen = 0
    for features in islice(_records(files), records):
        seen += 1
        for name, feature in features.items():
            kind = feature.WhichOneof("kind")
            if kind is not None:
                lengths.setdefault((name, kind), []).append(len(getattr(feature, kind).value))
    if not seen:
        raise EdgeError(f"{', '.join(map(str, files))}: no records; name TFRecord files of tf.Examples")
    schema = schema_pb2.Schema()
    for (name, kind), counts in sorted(lengths.items()):
        if schema.feature and schema.feature[-1].name == name:
            raise EdgeError(f"feature {name!r} has values of two types; write the examples again")
        feature = schema.feature.add(name=name, type=_TYPES[kind])
        if len(counts) == seen and len(set(counts)) == 1:
            feature.shape.SetInParent()
            feature.presence.min_fraction = 1
            for size in _shape(counts[0], shapes.get(name)):
                feature.shape.dim.add(size=size)
    return schema


def _records(files: Sequence[Path]) -> Iterator[Mapping[str, tf.train.Feature]]:
    for file in files:
        if not file.is_file():
            raise EdgeError(f"{file}: no such file; name TFRecord files of tf.Examples")
        try:
            for record in tf.data.TFRecordDataset(str(file), "GZIP" if file.suffix == ".gz" else "").as_numpy_iterator():
                yield tf.train.Example.FromString(record).features.feature
        except (DecodeError, tf.errors.OpError) as error:
            raise EdgeError(f"{file}: no TFRecord file of tf.Examples: {' '.join(str(error).split()):.200}") from None


def _shape(count: int, wanted: Sequence[int] | None) -> tuple[int, ...]:
    if wanted is not None and all(size > 0 for size in wanted) and math.prod(wanted) == count:
        return tuple(wanted)
    return () if count == 1 else (count,)

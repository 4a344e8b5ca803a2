"""Artifacts of tf.Examples and of their schemas, built by hand as TFX's components lay them out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import artifact_utils, standard_artifacts

Values = Sequence[float] | Sequence[int] | Sequence[bytes]


def example(features: Mapping[str, Values], order: Sequence[str] | None = None) -> bytes:
    """A serialized tf.Example with its features in a given order; TensorFlow and TFX leave the order to chance."""
    parts = []
    for name in order or features:
        part = tf.train.Example()
        feature, values = part.features.feature[name], features[name]
        if values:
            kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(values[0])]
            getattr(feature, kind).value.extend(values)
        parts.append(part.SerializeToString())
    return b"".join(parts)  # parsing merges them


def write_shards(folder: Path, shards: Sequence[Sequence[bytes]], suffix: str = ".gz") -> None:
    folder.mkdir(parents=True)
    for i, records in enumerate(shards):
        path = folder / f"data-{i:05d}-of-{len(shards):05d}{suffix}"
        with tf.io.TFRecordWriter(str(path), "GZIP" if suffix == ".gz" else "") as writer:
            for record in records:
                writer.write(record)


def examples_artifact(folder: Path, splits: Mapping[str, Sequence[Sequence[bytes]]]) -> standard_artifacts.Examples:
    """An Examples artifact with the shards of each split."""
    for name, shards in splits.items():
        write_shards(folder / f"Split-{name}", shards)
    artifact = standard_artifacts.Examples()
    artifact.uri = str(folder)
    artifact.split_names = artifact_utils.encode_split_names(list(splits))
    return artifact


def schema(**features: Any) -> schema_pb2.Schema:
    """A schema of features that every example has: by name the type and the dimensions, or None for a varying number of values."""
    text = ""
    for name, (kind, *shape) in features.items():
        fixed = "" if shape == [None] else f"shape {{ {' '.join(f'dim {{ size: {d} }}' for d in shape)} }} presence {{ min_fraction: 1 }}"
        text += f'feature {{ name: "{name}" type: {kind} {fixed} }}\n'
    return text_format.Parse(text, schema_pb2.Schema())


def schema_artifact(folder: Path, content: schema_pb2.Schema) -> standard_artifacts.Schema:
    """A Schema artifact, as SchemaGen writes it."""
    folder.mkdir(parents=True)
    (folder / "schema.pbtxt").write_text(text_format.MessageToString(content))
    artifact = standard_artifacts.Schema()
    artifact.uri = str(folder)
    return artifact


def transform_graph_artifact(folder: Path, content: schema_pb2.Schema) -> standard_artifacts.TransformGraph:
    """The schema of a TransformGraph artifact, without its graph."""
    (folder / "transformed_metadata").mkdir(parents=True)
    (folder / "transformed_metadata" / "schema.pbtxt").write_text(text_format.MessageToString(content))
    artifact = standard_artifacts.TransformGraph()
    artifact.uri = str(folder)
    return artifact

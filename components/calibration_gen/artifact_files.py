"""The files of a CalibrationData artifact."""

import gzip
import io
import tempfile
from pathlib import Path

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.io import fileio

from tfx_edge.components.documents import write_bytes, write_document
from tfx_edge.schemas import CalibrationSummary

SHARD = "Split-calibration/calibration-00000-of-00001.gz"
SCHEMA = "schema.pbtxt"
SUMMARY = "calibration.json"


def write(records: tuple[bytes, ...], summary: CalibrationSummary, schema: schema_pb2.Schema, uri: str) -> None:
    """Writes a CalibrationData artifact, whole or not at all; the same sample gives the same bytes."""
    try:
        write_bytes(f"{uri}/{SHARD}", tfrecord_gz(records))
        write_bytes(f"{uri}/{SCHEMA}", text_format.MessageToString(schema).encode())
        write_document(f"{uri}/{SUMMARY}", summary)  # last: where it is, all is
    except BaseException:
        if fileio.exists(uri):
            fileio.rmtree(uri)
        raise


def tfrecord_gz(records: tuple[bytes, ...]) -> bytes:
    """A gzipped TFRecord file's content; gzip by Python, which unlike TensorFlow can leave out the time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "records")
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in records:
                writer.write(record)
        content = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=content, mtime=0) as file:
            file.write(path.read_bytes())
        return content.getvalue()

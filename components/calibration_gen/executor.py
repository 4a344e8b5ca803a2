"""Examples in, calibration data out; the sampling is in `sampling`, what is written about the sample in `summary`."""

import gzip
import io
import tempfile
from pathlib import Path
from typing import Any

import apache_beam as beam
import tensorflow as tf
from apache_beam.pvalue import PCollection
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from tfx_edge.components import examples, keys
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.calibration_gen.records import KeyByStratum, require_feature
from tfx_edge.components.calibration_gen.sampling import Keyed, Sample, Stratified, Uniform
from tfx_edge.components.calibration_gen.summary import summarize
from tfx_edge.components.documents import read_bytes, write_bytes, write_document
from tfx_edge.schemas import CalibrationConfig, CalibrationSummary

SHARD = "Split-calibration/calibration-00000-of-00001.gz"
SCHEMA = "schema.pbtxt"
SUMMARY = "calibration.json"


class Executor(BaseBeamExecutor):
    """Executes CalibrationGen."""

    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Samples a split of `examples` into `calibration_data`.

        Raises:
            EdgeError: the input doesn't allow it; nothing is left in the output then.
        """
        config = CalibrationConfig.from_json(exec_properties[keys.CONFIG])
        schema = examples.transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH, []), input_dict.get(keys.SCHEMA, []))
        if config.stratify_by is not None:
            require_feature(config.stratify_by, schema)
        sources = examples.split_sources(input_dict[keys.EXAMPLES], config.split, schema)
        output = artifact_utils.get_single_instance(output_dict[keys.CALIBRATION_DATA])

        def read(pipeline: beam.Pipeline, label: str) -> PCollection[Keyed]:
            records = pipeline | f"Read{label}" >> examples.ReadExamples(sources)
            return records | f"Key{label}" >> beam.ParDo(KeyByStratum(schema, config.stratify_by)).with_output_types(Keyed)

        with clean_errors(), self._make_beam_pipeline() as pipeline:
            if config.strategy == "stratified":
                sample = (read(pipeline, "ToCount"), read(pipeline, "ToDraw")) | Stratified(config)
            else:
                sample = read(pipeline, "ToDraw") | Uniform(config)
            _ = sample | "Write" >> beam.Map(write, config, schema.SerializeToString(), output.uri)

        summary = CalibrationSummary.from_json(read_bytes(f"{output.uri}/{SUMMARY}"))
        output.set_int_custom_property("count", summary.count)
        output.set_string_custom_property("strategy", config.strategy)
        output.set_string_custom_property("digest", summary.digest)


def write(sample: Sample, config: CalibrationConfig, serialized_schema: bytes, uri: str) -> None:
    """Writes a CalibrationData artifact, whole or not at all; the same sample gives the same bytes."""
    schema = schema_pb2.Schema.FromString(serialized_schema)
    summary = summarize(sample, config, schema)
    try:
        write_bytes(f"{uri}/{SHARD}", tfrecord_gz(sample.records))
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

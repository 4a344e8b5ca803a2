"""Reading an Examples artifact in any payload format that TFX has, through tfx-bsl's TFXIO."""

import math
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from apache_beam.pvalue import PCollection
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.util import examples_utils, tfxio_utils
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils
from tfx_bsl.coders import example_coder
from tfx_bsl.tfxio import tensor_adapter, tf_example_record, tfxio

from tfx_edge.schemas import EdgeError

_TELEMETRY = ["tfx_edge"]


def split_sources(
    examples: Sequence[Artifact], split: str, schema: schema_pb2.Schema | None = None, raw_record_column: str | None = None
) -> list[tfxio.TFXIO]:
    """One source for each Examples artifact, reading one split of it.

    Args:
        examples: the artifacts of one input channel.
        split: the split's name.
        schema: of the features; without it only raw records can be read.
        raw_record_column: adds the serialized records to each RecordBatch under this name.

    Raises:
        EdgeError: an artifact has no such split, the split has no files, or TFX can't read their payload format.
    """
    sources = []
    for artifact in examples:
        splits = artifact_utils.decode_split_names(artifact.split_names) if artifact.split_names else []
        if split not in splits:
            there = (
                f"which have {', '.join(splits)}; name one of these"
                if splits
                else "which have none; run the component that makes them again"
            )
            raise EdgeError(f"split {split!r}: not in the examples at {artifact.uri}, {there}")
        [pattern] = examples_utils.get_split_file_patterns([artifact], split)
        if not fileio.glob(pattern):
            raise EdgeError(f"split {split!r} of the examples at {artifact.uri}: no files; run the component that makes it again")
        try:
            make = tfxio_utils.get_tfxio_factory_from_artifact(
                list(examples), _TELEMETRY, schema=schema, raw_record_column_name=raw_record_column
            )
            sources.append(make(pattern))
        except (AssertionError, NotImplementedError, ValueError) as error:
            raise EdgeError(
                f"the examples at {artifact.uri} can't be read: {_line(error)}; give the component the output of a Transform"
            ) from error
    return sources


def transformed_schema(transform_graph: Sequence[Artifact], schema: Sequence[Artifact]) -> schema_pb2.Schema:
    """The schema of the transformed features: from the transform graph, or where a pipeline has no Transform, the schema itself.

    Raises:
        EdgeError: neither was given.
    """
    if transform_graph:
        path = f"{artifact_utils.get_single_uri(list(transform_graph))}/transformed_metadata/schema.pbtxt"
    elif schema:
        path = io_utils.get_only_uri_in_dir(artifact_utils.get_single_uri(list(schema)))
    else:
        raise EdgeError("examples without transform_graph or schema: their features are unknown; give the component one of the two")
    with fileio.open(path) as file:
        return text_format.Parse(file.read(), schema_pb2.Schema())


def raw_schema(transform_graph: str) -> schema_pb2.Schema:
    """The schema of the features that a Transform was given, from its TransformGraph artifact's folder."""
    with fileio.open(f"{transform_graph}/metadata/schema.pbtxt") as file:
        return text_format.Parse(file.read(), schema_pb2.Schema())


def adapter(source: tfxio.TFXIO) -> tensor_adapter.TensorAdapter:
    """Turns RecordBatches of a source into tensors by its schema."""
    return tensor_adapter.TensorAdapter(source.TensorAdapterConfig())


def dense_features(batch: pa.RecordBatch, tensors: tensor_adapter.TensorAdapter) -> dict[str, NDArray[Any]]:
    """A batch's dense features, `[n, ...]` each, by name; sparse and ragged ones are left out.

    Raises:
        EdgeError: as `batch_tensors`.
    """
    return {name: np.asarray(value) for name, value in batch_tensors(batch, tensors).items() if isinstance(value, tf.Tensor)}


def batch_tensors(batch: pa.RecordBatch, tensors: tensor_adapter.TensorAdapter) -> dict[str, Any]:
    """A batch's features as TensorFlow's eager tensors, dense, sparse or ragged, by name.

    Raises:
        EdgeError: a feature that the schema calls dense is missing from an example, or holds another number of values.
    """
    # The adapter only counts the values of the whole batch: an example with none and one with two would pass, all shifted.
    misfit = _misfit(batch, tensors, absent_fits=True)
    values: dict[str, Any] = {}
    if misfit is None:
        try:
            values = tensors.ToBatchTensors(batch)
        except Exception as error:  # noqa: BLE001 - the adapter raises whatever pyarrow or numpy raise
            misfit = _misfit(batch, tensors, absent_fits=False) or _line(error.__cause__ or error)
    if misfit is not None:
        raise EdgeError(f"the examples don't fit their schema: {misfit}")
    return values


def _misfit(batch: pa.RecordBatch, tensors: tensor_adapter.TensorAdapter, *, absent_fits: bool) -> str | None:
    """Names the first dense feature that has another number of values in an example than the schema says.

    `absent_fits`: leaves out examples without the feature, which the adapter fills where the schema has a default value.
    """
    for name, spec in tensors.TypeSpecs().items():
        if not isinstance(spec, tf.TensorSpec) or name not in batch.schema.names:
            continue
        want = math.prod(spec.shape[1:].as_list())
        lengths = pc.list_value_length(batch.column(batch.schema.get_field_index(name)))
        lengths = pc.fill_null(lengths, want if absent_fits else 0)
        wrong = lengths.filter(pc.not_equal(lengths, want))
        if len(wrong):
            return misfit_text(name, f"{wrong[0]} values", str(want))
    return None


def misfit_text(feature: str, have: str, want: str) -> str:
    """Says of a feature that an example has other values of it than the schema says, and what to mend."""
    return (
        f"feature {feature!r} has {have} in an example, the schema says {want}; "
        "mend the data or Transform's preprocessing_fn, so that every example has it"
    )


def read_examples(pipeline: beam.Pipeline, sources: Sequence[tfxio.TFXIO], label: str = "Read") -> list[PCollection[bytes]]:
    """Reads sources as serialized tf.Examples, whatever their payload format: a collection for each source.

    Equal tf.Examples give equal bytes: features in the order of their names, those without values left out. TFX and TensorFlow
    write them in an order that changes from record to record, and a feature without values in three ways, so the bytes in the
    files say nothing about equality. They aren't flattened, since Beam's local runners would keep them all before they read on.

    Raises, in a worker:
        EdgeError: a record isn't a tf.Example, or can't be made one.
    """
    return [_read(pipeline, source, f"{label}[{i}]") for i, source in enumerate(sources)]


def _read(pipeline: beam.Pipeline, source: tfxio.TFXIO, label: str) -> PCollection[bytes]:
    if isinstance(source, tf_example_record.TFExampleRecord):
        records = pipeline | label >> source.RawRecordBeamSource()
    else:
        records = pipeline | label >> source.BeamSource() | f"{label}Encode" >> beam.FlatMap(_encode).with_output_types(bytes)
    return records | f"{label}Canonical" >> beam.Map(_canonical).with_output_types(bytes)


def _encode(batch: pa.RecordBatch) -> list[bytes]:
    try:
        columns = [_encodable(column) for column in batch.columns]
        encoded: list[bytes] = example_coder.RecordBatchToExamples(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
    except Exception as error:  # neither the encoder nor pyarrow's casts have an exception of their own
        raise EdgeError(
            f"the examples can't be written as tf.Examples: {_line(error)}; give the component the output of a Transform"
        ) from error
    return encoded


def _encodable(column: pa.Array) -> pa.Array:
    """A column with the one type of each kind that the encoder takes: lists of int64, of float or of bytes.

    Parquet files have others, and a column of single values where each example has one.
    """
    kind = column.type.value_type if pa.types.is_large_list(column.type) or pa.types.is_list(column.type) else column.type
    if kind is column.type and not pa.types.is_nested(kind):
        column = pa.LargeListArray.from_arrays(np.cumsum([0, *pc.is_valid(column).to_pylist()]), column.drop_null())
    if pa.types.is_integer(kind):
        return column.cast(pa.large_list(pa.int64()))
    if pa.types.is_floating(kind):
        return column.cast(pa.large_list(pa.float32()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.large_list(pa.large_binary()))
    return column


def _canonical(record: bytes) -> bytes:
    try:
        example = tf.train.Example.FromString(record)
    except DecodeError as error:
        raise EdgeError("a record of the examples isn't a tf.Example, as their payload_format says; write them again") from error
    features = example.features.feature
    for name in [name for name, feature in features.items() if not _has_values(feature)]:
        del features[name]
    ordered: bytes = example.SerializeToString(deterministic=True)
    return ordered


def _has_values(feature: tf.train.Feature) -> bool:
    kind = feature.WhichOneof("kind")
    return kind is not None and len(getattr(feature, kind).value) > 0


def decode(records: Sequence[bytes], schema: schema_pb2.Schema) -> tuple[pa.RecordBatch, tensor_adapter.TensorAdapter]:
    """Serialized tf.Examples as one batch of the schema's features, and the adapter that makes tensors of it.

    Raises:
        EdgeError: a feature has values of another type than the schema says.
    """
    try:
        batch = example_coder.ExamplesToRecordBatchDecoder(schema.SerializeToString()).DecodeBatch(list(records))
    except Exception as error:  # the decoder has no exception of its own
        raise EdgeError(f"the examples don't fit their schema: {_line(error)}; mend the data, or the schema") from error
    return batch, _adapter_of(schema)


def type_specs(schema: schema_pb2.Schema) -> dict[str, tf.TypeSpec]:
    """What a batch of a schema's features is in TensorFlow, by name."""
    return dict(_adapter_of(schema).TypeSpecs())


def _adapter_of(schema: schema_pb2.Schema) -> tensor_adapter.TensorAdapter:
    return adapter(tf_example_record.TFExampleBeamRecord("memory", _TELEMETRY, schema))


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())

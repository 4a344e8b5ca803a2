"""Reading an Examples artifact in any payload format that TFX has, through tfx-bsl's TFXIO."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from google.protobuf import text_format
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.util import tfxio_utils
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils
from tfx_bsl.tfxio import tensor_adapter, tfxio

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
        EdgeError: an artifact has no such split, or the split has no files.
    """
    make = tfxio_utils.get_tfxio_factory_from_artifact(
        list(examples), _TELEMETRY, schema=schema, raw_record_column_name=raw_record_column
    )
    sources = []
    for artifact in examples:
        splits = artifact_utils.decode_split_names(artifact.split_names)
        if split not in splits:
            raise EdgeError(f"split {split!r}: not in the examples at {artifact.uri}, which have {', '.join(splits)}; name one of these")
        pattern = io_utils.all_files_pattern(artifact_utils.get_split_uri([artifact], split))
        if not fileio.glob(pattern):
            raise EdgeError(f"split {split!r} of the examples at {artifact.uri}: no files; run the component that makes it again")
        sources.append(make(pattern))
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


def adapter(source: tfxio.TFXIO) -> tensor_adapter.TensorAdapter:
    """Turns RecordBatches of a source into tensors by its schema."""
    return tensor_adapter.TensorAdapter(source.TensorAdapterConfig())


def dense_features(batch: pa.RecordBatch, tensors: tensor_adapter.TensorAdapter) -> dict[str, NDArray[Any]]:
    """A batch's dense features, `[n, ...]` each, by name; sparse and ragged ones are left out.

    Raises:
        EdgeError: a feature that the schema calls dense is missing from an example, or holds another number of values.
    """
    try:
        values = tensors.ToBatchTensors(batch)
    except Exception as error:  # noqa: BLE001 - the adapter raises whatever pyarrow or numpy raise
        raise EdgeError(f"the examples don't fit their schema: {_misfit(batch, tensors) or error}") from error
    return {name: np.asarray(value) for name, value in values.items() if isinstance(value, tf.Tensor)}


def _misfit(batch: pa.RecordBatch, tensors: tensor_adapter.TensorAdapter) -> str | None:
    """Names the dense feature that has another number of values than the schema says, in the first such example."""
    for name, spec in tensors.TypeSpecs().items():
        if not isinstance(spec, tf.TensorSpec) or name not in batch.schema.names:
            continue
        want = int(np.prod(spec.shape[1:]))
        for row in batch.column(batch.schema.get_field_index(name)):
            have = 0 if row.as_py() is None else len(row.as_py())
            if have != want:
                return (
                    f"feature {name!r} has {have} values in an example, the schema says {want}; "
                    "mend the data or Transform's preprocessing_fn, so that every example has it"
                )
    return None

"""Raw examples for a candidate that takes raw features: transformed as they are read, so both models see the same examples.

Labels, slices, weights and the baseline's inputs are then Transform's outputs as ever, made by its own graph; beside them are the
raw features as a device gives them, under names that no other feature has.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types.artifact import Artifact
from tfx_bsl.tfxio import tensor_adapter, tensor_to_arrow, tfxio

from tfx_edge.components.examples import batch_tensors, raw_schema, split_sources, type_specs
from tfx_edge.optimize.raw_features import TransformGraph, device_features, device_spec
from tfx_edge.schemas import EdgeError

_RAW = "raw feature: "


class TransformedSource:
    """A source of raw examples that gives RecordBatches of transformed features, and of raw ones as `raw_features` reads them."""

    def __init__(self, source: tfxio.TFXIO, transform_graph: str, specs: Mapping[str, tf.TypeSpec]) -> None:
        """Wraps a source.

        Args:
            source: of raw examples, with their schema.
            transform_graph: folder of the TransformGraph artifact.
            specs: of all that the batches are to hold.
        """
        self._source, self._transform_graph, self._specs = source, transform_graph, dict(specs)

    def BeamSource(self, batch_size: int | None = None) -> beam.PTransform:
        """Reads and transforms; as TFXIO's."""
        transform = _Transform(self._source.TensorAdapterConfig(), self._transform_graph, self._specs)
        return self._source.BeamSource(batch_size) | "Transform" >> beam.ParDo(transform)

    def TensorAdapterConfig(self) -> tensor_adapter.TensorAdapterConfig:
        """How the batches become tensors; as TFXIO's."""
        converter = tensor_to_arrow.TensorsToRecordBatchConverter(self._specs)
        return tensor_adapter.TensorAdapterConfig(converter.arrow_schema(), converter.tensor_representations())


def transformed_sources(
    examples: Sequence[Artifact], split: str, transform_graph: str, schema: schema_pb2.Schema, inputs: Sequence[str]
) -> list[TransformedSource]:
    """One source for each artifact of raw Examples.

    Args:
        examples: what Transform was given.
        split: the split's name.
        transform_graph: folder of the TransformGraph artifact.
        schema: of the transformed features.
        inputs: the raw features that the candidate takes.

    Raises:
        EdgeError: there is no such split, or an input is no raw feature that a device can give.
    """
    raw = TransformGraph(transform_graph).raw
    unknown = [name for name in inputs if name not in raw or raw[name].dtype == tf.string]
    if unknown:
        raise EdgeError(
            f"candidate: takes {', '.join(map(repr, unknown))}, Transform's raw features are {', '.join(map(repr, sorted(raw)))}; "
            "export it with the transform_graph that it was trained with"
        )
    specs = type_specs(schema)
    for name in inputs:
        spec = device_spec(name, raw[name])
        specs[_RAW + name] = tf.TensorSpec(spec.shape, spec.dtype)
    return [TransformedSource(source, transform_graph, specs) for source in split_sources(examples, split, raw_schema(transform_graph))]


def raw_features(features: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The raw ones of a batch's features, `[n, ...]` each, by the names that they have in the raw examples."""
    return {name.removeprefix(_RAW): values for name, values in features.items() if name.startswith(_RAW)}


class _Transform(beam.DoFn):
    def __init__(self, config: tensor_adapter.TensorAdapterConfig, transform_graph: str, specs: Mapping[str, tf.TypeSpec]) -> None:
        self._config, self._transform_graph, self._specs = config, transform_graph, specs

    def setup(self) -> None:
        self._adapter = tensor_adapter.TensorAdapter(self._config)
        self._graph = TransformGraph(self._transform_graph)
        self._converter = tensor_to_arrow.TensorsToRecordBatchConverter(self._specs)

    def process(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        tensors = batch_tensors(batch, self._adapter)
        raw = {_RAW + name: tf.constant(values) for name, values in device_features(tensors).items()}
        missing = sorted(name.removeprefix(_RAW) for name in self._specs if name.startswith(_RAW) and name not in raw)
        if missing:
            raise EdgeError(
                f"the raw examples: {', '.join(map(repr, missing))} has several values in an example, a device gives the model one; "
                "give it a fixed shape in the schema"
            )
        every = {**self._graph.layer(tensors), **raw}
        yield self._converter.convert({name: every[name] for name in self._specs})

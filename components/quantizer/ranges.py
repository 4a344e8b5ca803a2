"""Activation ranges over calibration records, wherever Beam runs them."""

from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa
from tfx_bsl.tfxio import tensor_adapter, tfxio

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.examples import dense_features
from tfx_edge.litert.ranges import RangeCollector, merge
from tfx_edge.schemas import EdgeError, TensorRanges


class CollectRanges(beam.PTransform):  # type: ignore[misc]
    """Reads examples and gives one `TensorRanges` over all of them, the same however they are bundled.

    Raises, in a worker:
        EdgeError: there are no examples, or they have no feature of an input's name, or one that doesn't fit; an activation took
            NaN or Inf.
    """

    def __init__(self, source: tfxio.TFXIO, model: str, batch_size: int, name: str) -> None:
        """Plans the reading.

        Args:
            source: of the examples.
            model: path of the float flatbuffer, which each worker loads once.
            batch_size: examples in one step, at most.
            name: what to call the examples in an error.
        """
        super().__init__()
        self._source, self._model, self._batch_size, self._name = source, model, batch_size, name

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[TensorRanges]:
        collect = _Collect(self._model, self._source.TensorAdapterConfig(), self._name)
        return (
            pipeline
            | "Read" >> self._source.BeamSource(self._batch_size)
            | "Collect" >> beam.ParDo(collect).with_output_types(TensorRanges)
            | "Merge" >> beam.CombineGlobally(merge)
            | "RequireSome" >> beam.Map(_require_some, self._name).with_output_types(TensorRanges)
        )


def _require_some(ranges: TensorRanges, name: str) -> TensorRanges:
    if ranges.examples == 0:
        raise EdgeError(f"{name}: holds no examples; run CalibrationGen again")
    return ranges


class _Collect(beam.DoFn):  # type: ignore[misc]
    def __init__(self, model: str, adapter: tensor_adapter.TensorAdapterConfig, name: str) -> None:
        self._model, self._adapter_config, self._name = model, adapter, name

    def setup(self) -> None:
        self._adapter = tensor_adapter.TensorAdapter(self._adapter_config)
        self._collector = RangeCollector(read_bytes(self._model))

    def process(self, batch: pa.RecordBatch) -> Iterator[TensorRanges]:
        yield self._collector(dense_features(batch, self._adapter), self._name)

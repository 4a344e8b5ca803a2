"""Statistics of activations over calibration records, wherever Beam runs them."""

from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from tfx_bsl.tfxio import tensor_adapter, tfxio

from tfx_edge.components.documents import read_bytes
from tfx_edge.components.examples import dense_features
from tfx_edge.litert.activation_statistics import Statistics
from tfx_edge.litert.collector import Collector, merge_parts
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.ranges import RangeMethod

_Parts = tuple[Statistics, ...]


class CollectStatistics(beam.PTransform):  # type: ignore[misc]
    """Reads examples and gives the statistics of the activations over all of them, in parts, the same however they are bundled.

    Raises, in a worker:
        EdgeError: there are no examples, or they have no feature of an input's name, or one that doesn't fit; an activation took
            NaN or Inf.
    """

    def __init__(self, source: tfxio.TFXIO, model: str, methods: frozenset[RangeMethod], batch_size: int, name: str) -> None:
        """Plans the reading.

        Args:
            source: of the examples.
            model: path of the float flatbuffer, which each worker loads once.
            methods: what ranges are to be taken by; see `Collector`.
            batch_size: examples in one step, at most.
            name: what to call the examples in an error.
        """
        super().__init__()
        self._source, self._model, self._methods, self._batch_size, self._name = source, model, methods, batch_size, name

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[_Parts]:
        collect = _Collect(self._model, self._methods, self._batch_size, self._source.TensorAdapterConfig(), self._name)
        return (
            pipeline
            | "Read" >> self._source.BeamSource(self._batch_size)
            | "Collect" >> beam.ParDo(collect).with_output_types(_Parts)
            | "Merge" >> beam.CombineGlobally(merge_parts)
            | "RequireSome" >> beam.Map(_require_some, self._name).with_output_types(_Parts)
        )


def _require_some(parts: _Parts, name: str) -> _Parts:
    if all(part.examples == 0 for part in parts):
        raise EdgeError(f"{name}: holds no examples; run CalibrationGen again")
    return parts


class _Collect(beam.DoFn):  # type: ignore[misc]
    def __init__(
        self, model: str, methods: frozenset[RangeMethod], batch_size: int, adapter: tensor_adapter.TensorAdapterConfig, name: str
    ) -> None:
        self._model, self._methods, self._batch_size, self._adapter_config, self._name = model, methods, batch_size, adapter, name

    def setup(self) -> None:
        self._adapter = tensor_adapter.TensorAdapter(self._adapter_config)
        self._collector = Collector(read_bytes(self._model), self._methods, batch_size=self._batch_size)

    def process(self, batch: pa.RecordBatch) -> None:
        self._collector.add(dense_features(batch, self._adapter), self._name)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        window = GlobalWindow()
        yield WindowedValue(self._collector.finish(self._name), window.max_timestamp(), [window])

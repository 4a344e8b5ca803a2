"""The step of the Beam pipeline that compares both models' predictions and writes what it found.

It looks at the batches between TFMA's prediction step and its splitting of batches into examples, passes them on as they are,
and writes one document beside TFMA's files.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from tensorflow_model_analysis.extractors import extractor
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from tfx_edge.components.documents import read_bytes, write_document
from tfx_edge.components.edge_validator.statistics.buffer import Buffer, LabelCheck, Partial, merge_partials
from tfx_edge.components.edge_validator.statistics.drift import Evidence, drift_document
from tfx_edge.components.edge_validator.statistics.paired import to_document
from tfx_edge.components.edge_validator.statistics.slices import written_key
from tfx_edge.schemas import Threshold
from tfx_edge.schemas.statistics import PairedStatistics, SliceStatistics

STAGE = "ComparePredictions"
_FILE = "statistics.json"

_Keyed = tuple[slicer_lib.SliceKeyType, Partial]


def comparing(
    extractors: Sequence[extractor.Extractor],
    after: str,
    thresholds: Sequence[Threshold],
    slices: Sequence[config_pb2.SlicingSpec],
    folder: str,
) -> list[extractor.Extractor]:
    """TFMA's extractors with the comparison among them.

    Args:
        extractors: as `tfma.default_extractors` gives them.
        after: stage name of the prediction step, which gives batches with both models' predictions by model name.
        thresholds: whose metrics to look at example by example.
        slices: TFMA's slicing specs, an empty one for the overall slice.
        folder: where `read_statistics` finds the result once the pipeline ran.
    """
    at = [e.stage_name for e in extractors].index(after) + 1
    step = extractor.Extractor(stage_name=STAGE, ptransform=ComparePredictions(thresholds, slices, folder))
    return [*extractors[:at], step, *extractors[at:]]


def read_statistics(folder: str) -> PairedStatistics:
    """What `ComparePredictions` wrote to a folder."""
    return PairedStatistics.from_json(read_bytes(f"{folder}/{_FILE}"))


class ComparePredictions(beam.PTransform):
    """Batches of extracts to the same batches; on the way `statistics.json` is written, a `PairedStatistics`."""

    def __init__(self, thresholds: Sequence[Threshold], slices: Sequence[config_pb2.SlicingSpec], folder: str) -> None:
        """Arguments as of `comparing`."""
        super().__init__()
        self._thresholds = tuple(thresholds)
        self._slices = [spec.SerializeToString() for spec in slices]
        self._folder = folder

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        """Adds the comparison beside the extracts; the check stands before it, so that TFMA sees no batch that it would choke on."""
        checked = extracts | "CheckLabels" >> beam.ParDo(_CheckLabels(self._thresholds))
        _ = (
            checked
            | "Compare" >> beam.ParDo(_Compare(self._thresholds, self._slices))
            | "MergeSlices" >> beam.CombinePerKey(_Merge())
            | "Gather" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
            | "Write" >> beam.Map(_write, [(t.title, t.output) for t in self._thresholds], f"{self._folder}/{_FILE}")
        )
        return checked


class _CheckLabels(beam.DoFn):
    def __init__(self, thresholds: Sequence[Threshold]) -> None:
        self._thresholds = thresholds

    def setup(self) -> None:
        self._check = LabelCheck(self._thresholds)

    def process(self, extracts: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._check(extracts)
        yield extracts


class _Compare(beam.DoFn):
    def __init__(self, thresholds: Sequence[Threshold], slices: Sequence[bytes]) -> None:
        self._thresholds = thresholds
        self._slices = slices

    def setup(self) -> None:
        self._specs = [config_pb2.SlicingSpec.FromString(spec) for spec in self._slices]

    def start_bundle(self) -> None:
        self._buffer = Buffer(self._thresholds, self._specs)
        self._found: dict[slicer_lib.SliceKeyType, Partial] = {}

    def process(self, extracts: dict[str, Any]) -> None:
        self._keep(self._buffer.add(extracts))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        self._keep(self._buffer.flush())
        for key, partial in self._found.items():
            yield WindowedValue((key, partial), GlobalWindow().max_timestamp(), (GlobalWindow(),))

    def _keep(self, ready: Iterable[_Keyed]) -> None:
        for key, partial in ready:
            self._found[key] = merge_partials([self._found[key], partial]) if key in self._found else partial


class _Merge(beam.CombineFn):
    """Partials to one; None before the first."""

    def create_accumulator(self) -> Partial | None:
        return None

    def add_input(self, accumulator: Partial | None, element: Partial) -> Partial | None:
        return self.merge_accumulators([accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[Partial | None]) -> Partial | None:
        there = [part for part in accumulators if part is not None]
        return merge_partials(there) if there else None

    def extract_output(self, accumulator: Partial | None) -> Partial | None:
        return accumulator


def _write(found: list[Any], metrics: Sequence[tuple[str, str | None]], path: str) -> None:
    write_document(path, _document(found, metrics))


def _document(found: Sequence[_Keyed], metrics: Sequence[tuple[str, str | None]]) -> PairedStatistics:
    evidence: dict[str | None, Evidence] = {}
    for output, drift in ((output, drift) for _, partial in found for output, drift in partial.drift.items()):
        evidence[output] = evidence.get(output, Evidence()) & drift.evidence
    slices = (
        SliceStatistics(
            key=written_key(key),
            examples=partial.examples,
            weighted=partial.weighted,
            means=tuple(
                None if mean is None else to_document(metric, output, mean)
                for (metric, output), mean in zip(metrics, partial.means, strict=True)
            ),
            drift=tuple(drift_document(o, partial.drift[o], evidence[o]) for o in sorted(partial.drift, key=str)),
        )
        for key, partial in found
    )
    return PairedStatistics(slices=tuple(sorted(slices, key=lambda s: (len(s.key), repr(s.key)))))

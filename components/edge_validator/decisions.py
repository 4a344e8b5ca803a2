"""The step of the Beam pipeline that keeps which decisions of the two models differ, and the examples on which they differ most."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue
from tensorflow_model_analysis.extractors import extractor

from tfx_edge.components.documents import write_document
from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE
from tfx_edge.components.edge_validator.extractor import model_features
from tfx_edge.components.edge_validator.statistics.buffer import LABELS, batch_columns, of_output
from tfx_edge.components.edge_validator.statistics.confusion import Confusion, confusion, confusion_document, merge_confusion
from tfx_edge.components.edge_validator.statistics.disagreements import Apart, apart_in_batch, disagreement, furthest
from tfx_edge.components.edge_validator.statistics.drift import BatchDrift
from tfx_edge.schemas import OutputDecisions, PairedDecisions

FILE = "decisions.json"
_OUTPUTS = 4  # of which examples are kept, so that the document of a model with many stays small


@dataclass(frozen=True)
class Decided:
    """What some examples say of one output."""

    confusion: Confusion
    worst: tuple[Apart, ...]


_Found = dict[str | None, Decided]


def deciding(
    extractors: Sequence[extractor.Extractor], after: str, count: int, labels: Sequence[str], folder: str
) -> list[extractor.Extractor]:
    """TFMA's extractors with one among them that writes `decisions.json` and passes all on.

    Args:
        extractors: as `tfma.default_extractors` gives them.
        after: stage name of the prediction step, which gives batches with both models' predictions by model name.
        count: of the examples to keep for each output.
        labels: features that hold labels, which aren't shown as features.
        folder: where the document goes.
    """
    at = [e.stage_name for e in extractors].index(after) + 1
    step = extractor.Extractor(stage_name="KeepDecisions", ptransform=_KeepDecisions(count, tuple(labels), f"{folder}/{FILE}"))
    return [*extractors[:at], step, *extractors[at:]]


class _KeepDecisions(beam.PTransform):
    def __init__(self, count: int, labels: tuple[str, ...], path: str) -> None:
        super().__init__()
        self._count, self._labels, self._path = count, labels, path

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        _ = (
            extracts
            | "Decide" >> beam.ParDo(_Decide(self._count, self._labels))
            | "Merge" >> beam.CombineGlobally(MergeDecisions(self._count))
            | "Write" >> beam.Map(_write, self._path)
        )
        return extracts


class _Decide(beam.DoFn):
    """One result for a bundle: examples that it has worse ones than are neither hashed nor drawn."""

    def __init__(self, count: int, labels: tuple[str, ...]) -> None:
        self._count, self._labels = count, labels

    def start_bundle(self) -> None:
        self._found: _Found = {}

    def process(self, extracts: dict[str, Any]) -> None:
        for output, decided in _decided(extracts, self._labels, self._count, self._found):
            known = self._found.get(output)
            self._found[output] = decided if known is None else _merge([known, decided], self._count)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._found:
            yield WindowedValue(self._found, GlobalWindow().max_timestamp(), (GlobalWindow(),))


class MergeDecisions(beam.CombineFn):
    """Parts to one, whatever the order."""

    def __init__(self, count: int) -> None:
        self._count = count

    def create_accumulator(self) -> _Found:
        return {}

    def add_input(self, accumulator: _Found, element: _Found) -> _Found:
        return self.merge_accumulators([accumulator, element])

    def merge_accumulators(self, accumulators: Iterable[_Found]) -> _Found:
        every = list(accumulators)
        outputs = dict.fromkeys(output for found in every for output in found)
        return {output: _merge([found[output] for found in every if output in found], self._count) for output in outputs}

    def extract_output(self, accumulator: _Found) -> _Found:
        return accumulator


def _decided(extracts: Mapping[str, Any], labels: Sequence[str], count: int, known: _Found) -> Iterator[tuple[str | None, Decided]]:
    columns, features = dict(batch_columns(extracts)), model_features(extracts)
    shown = [name for name in features if name not in labels]
    outputs = sorted((output for model, output in columns if model == BASELINE), key=str)
    for position, output in enumerate(outputs):
        pair = columns[BASELINE, output], columns[CANDIDATE, output]
        truth = of_output(columns, LABELS, output)
        drift = BatchDrift(*pair, truth)
        worst: tuple[Apart, ...] = ()
        if count and position < _OUTPUTS:
            before = known[output].worst if output in known else ()
            floor = before[-1].error if len(before) == count else 0.0
            worst = furthest([apart_in_batch(drift, pair, truth, features, shown, count, floor)], count)
        yield output, Decided(confusion(drift.evidence, *pair, truth), worst)


def _merge(parts: Sequence[Decided], count: int) -> Decided:
    return Decided(merge_confusion(p.confusion for p in parts), furthest((p.worst for p in parts), count))


def _write(found: _Found, path: str) -> None:
    write_document(path, _document(found))


def _document(found: _Found) -> PairedDecisions:
    outputs = []
    for output, decided in sorted(found.items(), key=lambda item: str(item[0])):
        rule = decided.confusion.evidence.rule
        matrix, why = confusion_document(decided.confusion)
        outputs.append(
            OutputDecisions(
                output=output, rule=rule, confusion=matrix, no_confusion=why, worst=tuple(disagreement(a, rule) for a in decided.worst)
            )
        )
    return PairedDecisions(outputs=tuple(outputs))

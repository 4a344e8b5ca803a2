"""Batches of both models' predictions to partial results, one for each slice.

What a metric costs is mostly per call, so examples are kept until there are a few thousand and then looked at together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE
from tfx_edge.components.edge_validator.statistics.drift import BatchDrift, Drift, merge_drift
from tfx_edge.components.edge_validator.statistics.paired import Paired, merge_paired, paired
from tfx_edge.components.edge_validator.statistics.per_example import PerExample, per_example
from tfx_edge.components.edge_validator.statistics.slices import Slicer
from tfx_edge.components.labels import check_labels, check_weights
from tfx_edge.schemas import Metric, Threshold

_EXAMPLES = 4096


@dataclass(frozen=True)
class Partial:
    """What some examples of a slice say.

    Attributes:
        examples: how many.
        weighted: how many have a weight other than 0.
        means: one for each threshold, in order; None where its metric gives the examples no value.
        drift: by output; None is the only one of a model that has one.
    """

    examples: int
    weighted: int
    means: tuple[Paired | None, ...]
    drift: dict[str | None, Drift] = field(default_factory=dict)


def merge_partials(parts: Iterable[Partial]) -> Partial:
    """What the examples of all parts, at least one, say together."""
    every = list(parts)
    means = (None if any(p is None for p in column) else merge_paired(column) for column in zip(*(p.means for p in every), strict=True))
    outputs = dict.fromkeys(output for p in every for output in p.drift)
    return Partial(
        examples=sum(p.examples for p in every),
        weighted=sum(p.weighted for p in every),
        means=tuple(means),
        drift={output: merge_drift(p.drift[output] for p in every if output in p.drift) for output in outputs},
    )


class LabelCheck:
    """Checks that batches of TFMA's extracts have labels and weights with which the metrics of some thresholds mean something."""

    def __init__(self, thresholds: Sequence[Threshold]) -> None:
        """Looks up which metrics compare element by element."""
        self._metrics = [(threshold, _function(threshold) is not None) for threshold in thresholds]

    def __call__(self, extracts: Mapping[str, Any]) -> None:
        """Checks a batch with labels and both models' predictions.

        Raises:
            EdgeError: a label or a weight makes no sense.
        """
        columns = dict(batch_columns(extracts))
        if (_WEIGHTS, None) in columns:
            check_weights(columns[_WEIGHTS, None])
        for metric, is_mean in self._metrics:
            labels, predictions = of_output(columns, LABELS, metric.output), columns.get((BASELINE, metric.output))
            if labels is not None and predictions is not None:
                check_labels(metric, labels, predictions, is_mean)


class Buffer:
    """Takes batches of TFMA's extracts, gives partial results. Not for use from several threads at once."""

    def __init__(self, thresholds: Sequence[Threshold], slices: Sequence[config_pb2.SlicingSpec]) -> None:
        """An empty buffer for the metrics of some thresholds and TFMA's slicing specs."""
        self._thresholds = thresholds
        self._functions = [_function(t) for t in thresholds]
        self._slicer = Slicer(slices)
        self._clear()

    def _clear(self) -> None:
        self._columns: list[dict[_Column, NDArray[Any]]] = []
        self._codes: list[NDArray[np.int64]] = []
        self._count = 0

    def add(self, extracts: Mapping[str, Any]) -> Iterator[tuple[slicer_lib.SliceKeyType, Partial]]:
        """Takes a batch with features, labels and both models' predictions; gives what is ready by now."""
        columns = dict(batch_columns(extracts))
        if self._columns and _shapes(columns) != _shapes(self._columns[-1]):
            yield from self.flush()
        count = len(columns[next(key for key in columns if key[0] == BASELINE)])
        preprocessed = extracts.get(constants.TRANSFORMED_FEATURES_KEY) or {}
        before = [preprocessed[model] for model in (CANDIDATE, BASELINE) if model in preprocessed]
        self._codes.append(self._slicer.codes(extracts[constants.FEATURES_KEY], count, before))
        self._columns.append(columns)
        self._count += count
        if self._count >= _EXAMPLES:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[slicer_lib.SliceKeyType, Partial]]:
        """Gives what the examples still kept say, by slice."""
        if self._count:
            columns = {key: np.concatenate([c[key] for c in self._columns]) for key in self._columns[0]}
            codes = np.concatenate(self._codes)
            self._clear()
            means = self._means(columns)
            drift = {
                output: BatchDrift(columns[BASELINE, output], columns[CANDIDATE, output], of_output(columns, LABELS, output))
                for model, output in columns
                if model == BASELINE
            }
            for key, examples in self._slices(codes):
                weights = columns.get((_WEIGHTS, None))
                yield (
                    key,
                    Partial(
                        examples=len(examples),
                        weighted=len(examples) if weights is None else int(np.count_nonzero(weights[examples])),
                        means=tuple(
                            None if m is None else paired(m[0][examples], m[1][examples], None if weights is None else weights[examples])
                            for m in means
                        ),
                        drift={output: batch.over(examples) for output, batch in drift.items()},
                    ),
                )
        if self._slicer.full:
            self._slicer.forget()

    def _means(self, columns: "Mapping[_Column, NDArray[Any]]") -> "list[_Values | None]":
        """Values of both models for each threshold; a metric that several share is computed once."""
        known: dict[str, _Values | None] = {}
        found = []
        for threshold, function in zip(self._thresholds, self._functions, strict=True):
            name = repr((threshold.metric, sorted(threshold.config.items()), threshold.selection))
            if name not in known:
                known[name] = None if function is None else _values(function, columns, threshold.output)
            found.append(known[name])
        return found

    def _slices(self, codes: NDArray[np.int64]) -> Iterator[tuple[slicer_lib.SliceKeyType, NDArray[np.int64]]]:
        """Positions of the examples in each slice."""
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes[order], return_index=True)
        members: dict[int, list[NDArray[np.int64]]] = {}
        for code, examples in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            for position in self._slicer.combinations[code]:
                members.setdefault(position, []).append(examples)
        for position, parts in members.items():
            yield self._slicer.keys[position], np.sort(np.concatenate(parts))


_Column = tuple[str, str | None]
_Values = tuple[NDArray[np.float64], NDArray[np.float64]]
LABELS, _WEIGHTS = constants.LABELS_KEY, constants.EXAMPLE_WEIGHTS_KEY


def _function(metric: Metric) -> PerExample | None:
    if metric.top_k is not None or metric.average is not None or metric.query_key is not None:
        return None  # a mean over classes or queries
    return per_example(metric.metric, metric.config, metric.class_id)


def batch_columns(extracts: Mapping[str, Any]) -> Iterator[tuple[_Column, NDArray[Any]]]:
    """Arrays of a batch of TFMA's extracts by model or kind, and output; labels and weights are those that TFMA gives the candidate."""
    for model in (BASELINE, CANDIDATE):
        for output, values in _by_output(extracts[constants.PREDICTIONS_KEY][model]):
            yield (model, output), np.asarray(values)
    for kind in (LABELS, _WEIGHTS):
        of_model = extracts.get(kind)
        if isinstance(of_model, Mapping):
            of_model = of_model.get(CANDIDATE)
        for output, values in _by_output(of_model):
            if isinstance(values, np.ndarray):
                yield (kind, output), values.reshape(len(values), -1)[:, 0] if kind == _WEIGHTS else values


def _by_output(values: Any) -> Iterator[tuple[str | None, Any]]:
    yield from values.items() if isinstance(values, Mapping) else ((None, values),)


def _shapes(columns: Mapping[_Column, NDArray[Any]]) -> dict[_Column, tuple[int, ...]]:
    return {key: array.shape[1:] for key, array in columns.items()}


def of_output(columns: Mapping[_Column, NDArray[Any]], kind: str, output: str | None) -> NDArray[Any] | None:
    """What a batch has of a kind for an output: its own, or the only one there is."""
    return columns.get((kind, output), columns.get((kind, None)))


def _values(function: PerExample, columns: Mapping[_Column, NDArray[Any]], output: str | None) -> _Values | None:
    labels = of_output(columns, LABELS, output)
    if labels is None or (BASELINE, output) not in columns:
        return None
    try:
        baseline, candidate = (function(labels, columns[model, output]) for model in (BASELINE, CANDIDATE))
    except Exception:  # noqa: BLE001 - TFMA computes the metric too, and says what it has against these labels
        return None
    return (baseline, candidate) if len(baseline) == len(candidate) == len(labels) else None

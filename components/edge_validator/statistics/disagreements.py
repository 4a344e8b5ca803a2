"""The examples on which the two models are furthest apart.

Of equal ones those whose features hash lowest, and each example once, so what is kept is the same in whatever order, batches and
workers they come.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.components.edge_validator.example_view import example_view
from tfx_edge.components.edge_validator.sample import example_digest
from tfx_edge.components.edge_validator.statistics.confusion import label_classes
from tfx_edge.components.edge_validator.statistics.drift import RULES, BatchDrift
from tfx_edge.components.edge_validator.statistics.per_example import rows
from tfx_edge.schemas import Disagreement, ExampleFeature, OutputValue
from tfx_edge.schemas.statistics import FlipRule

_POSITIONS = 10  # of an output


@dataclass(frozen=True)
class Apart:
    """One example.

    Attributes:
        error: largest absolute difference of a value of the output.
        digest: of its features.
        label: its class or value; None where it is no single number.
        flips: by each of `RULES`.
        highest: position of the highest value, of baseline and candidate.
        predictions: position, value of the baseline, value of the candidate.
        features: for the report.
    """

    error: float
    digest: str
    label: float | None
    flips: tuple[bool, ...]
    highest: tuple[int, int]
    predictions: tuple[tuple[int, float, float], ...]
    features: tuple[ExampleFeature, ...]

    @property
    def order(self) -> tuple[float, str]:
        """Worst first."""
        return -self.error, self.digest


def furthest(parts: Iterable[Iterable[Apart]], count: int) -> tuple[Apart, ...]:
    """The worst examples of all parts, each once."""
    found: dict[str, Apart] = {}
    for apart in (apart for part in parts for apart in part):
        known = found.get(apart.digest)
        if known is None or apart.order < known.order:
            found[apart.digest] = apart
    return tuple(heapq.nsmallest(count, found.values(), key=lambda apart: apart.order))


def apart_in_batch(
    drift: BatchDrift,
    predictions: tuple[NDArray[Any], NDArray[Any]],
    labels: NDArray[Any] | None,
    features: Mapping[str, NDArray[Any]],
    shown: Iterable[str],
    count: int,
    floor: float = 0.0,
) -> Iterator[Apart]:
    """Examples of a batch that may be among the worst.

    Args:
        drift: of the output in the batch.
        predictions: `[n, ...]` of baseline and candidate.
        labels: `[n, ...]`; None where there are none that this output goes with.
        features: `[n, ...]` by name, which tell an example from another.
        shown: those that the report shows.
        count: how many of the batch to give, and those as bad as the last of them.
        floor: an error below this isn't of interest.
    """
    errors = drift.errors[:, 1]
    least = np.partition(errors, -count)[-count] if count < len(errors) else 0.0
    ordered = dict(sorted(features.items()))
    baseline, candidate = (rows(p).reshape(len(p), -1) for p in predictions)
    for i in np.flatnonzero((errors > 0) & (errors >= max(least, floor))).tolist():
        yield Apart(
            error=float(errors[i]),
            digest=example_digest({name: values[i] for name, values in ordered.items()}).hex(),
            label=_label(drift, labels, i),
            flips=tuple(drift.flips[i].tolist()),
            highest=(int(baseline[i].argmax()), int(candidate[i].argmax())),
            predictions=tuple(_telling(baseline[i], candidate[i])),
            features=example_view({name: features[name][i] for name in shown if name in features}),
        )


def disagreement(apart: Apart, rule: FlipRule | None) -> Disagreement:
    """An example as a document, by the rule that all examples together tell."""
    decides = rule == "argmax"
    return Disagreement(
        example=apart.digest,
        label=apart.label,
        error=apart.error,
        flipped=None if rule is None else apart.flips[RULES.index(rule)],
        baseline_decision=apart.highest[0] if decides else None,
        candidate_decision=apart.highest[1] if decides else None,
        predictions=tuple(OutputValue(position=p, baseline=b, candidate=c) for p, b, c in apart.predictions),
        features=apart.features,
    )


def _label(drift: BatchDrift, labels: NDArray[Any] | None, example: int) -> float | None:
    if labels is None or labels.dtype.kind not in "fiub":
        return None
    if drift.evidence.classes:
        return float(label_classes(labels[example : example + 1])[0])
    own = np.asarray(labels[example]).reshape(-1)
    return float(own[0]) if own.size == 1 and np.isfinite(own[0]) else None


def _telling(baseline: NDArray[Any], candidate: NDArray[Any]) -> Iterator[tuple[int, float, float]]:
    """All positions of a small output; of a larger one those where the models differ most and where either is highest."""
    positions = list(range(baseline.size))
    if baseline.size > _POSITIONS:
        best = [np.argsort(-values, kind="stable")[:3].tolist() for values in (baseline, candidate)]
        differ = np.argsort(-np.abs(baseline - candidate), kind="stable")[: _POSITIONS - 6].tolist()
        positions = sorted({*best[0], *best[1], *differ})
    for position in positions:
        yield position, float(baseline[position]), float(candidate[position])

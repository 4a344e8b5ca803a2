"""One metric of baseline and candidate on the same examples."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.components.edge_validator.statistics.moments import EMPTY, Moments, merge, moments
from tfx_edge.schemas.statistics import PairedMean


@dataclass(frozen=True)
class Paired:
    """Moments of a metric that is a mean over examples.

    Attributes:
        baseline: of the baseline's values.
        candidate: of the candidate's values.
        difference: of candidate minus baseline, example by example, so that what both have in common cancels.
        higher: examples on which the candidate's value is higher.
        lower: examples on which it is lower.
    """

    baseline: Moments = EMPTY
    candidate: Moments = EMPTY
    difference: Moments = EMPTY
    higher: int = 0
    lower: int = 0


def paired(baseline: NDArray[Any], candidate: NDArray[Any], weights: NDArray[Any] | None = None) -> Paired:
    """Compares the values of both models.

    Args:
        baseline: `[n]`, a value for each example.
        candidate: `[n]`, of the same examples.
        weights: `[n]`, or None for 1 each.
    """
    difference = np.asarray(candidate, np.float64) - np.asarray(baseline, np.float64)
    counted = np.ones(len(difference), bool) if weights is None else np.asarray(weights) != 0
    return Paired(
        baseline=moments(baseline, weights),
        candidate=moments(candidate, weights),
        difference=moments(difference, weights),
        higher=int((difference[counted] > 0).sum()),
        lower=int((difference[counted] < 0).sum()),
    )


def merge_paired(parts: Iterable[Paired]) -> Paired:
    """The comparison over the examples of all parts together."""
    every = list(parts)
    return Paired(
        baseline=merge(p.baseline for p in every),
        candidate=merge(p.candidate for p in every),
        difference=merge(p.difference for p in every),
        higher=sum(p.higher for p in every),
        lower=sum(p.lower for p in every),
    )


def to_document(metric: str, output: str | None, comparison: Paired) -> PairedMean | None:
    """A comparison as a document; None where a value was NaN or infinite, of which there is no statistic."""
    numbers = asdict(comparison)
    finite = all(np.isfinite(list(numbers[part].values())).all() for part in ("baseline", "candidate", "difference"))
    return PairedMean(metric=metric, output=output, **numbers) if finite else None


def from_document(document: PairedMean) -> Paired:
    """What `to_document` was given."""
    parts = {part: Moments(**getattr(document, part).model_dump()) for part in ("baseline", "candidate", "difference")}
    return Paired(**parts, higher=document.higher, lower=document.lower)

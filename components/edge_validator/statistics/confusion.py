"""How often each model decides for each class, by the class of the label.

As with flips, what a decision is, is known only once all labels and predictions were seen (`Evidence.rule`). So counts are kept for
each rule that a batch allows, and a merge keeps the rules that all its parts have.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.components.edge_validator.statistics.drift import Evidence
from tfx_edge.components.edge_validator.statistics.per_example import rows
from tfx_edge.schemas import ConfusionMatrix
from tfx_edge.schemas.decisions import MOST_CLASSES
from tfx_edge.schemas.statistics import FlipRule

_BOUNDS: dict[FlipRule, float] = {"above 0.5": 0.5, "above 0": 0.0}


@dataclass(frozen=True)
class Confusion:
    """Counts over some examples, in a form that merges.

    Attributes:
        evidence: what tells the rule.
        counts: `[2, classes, classes]` by rule: of baseline and candidate, by label and decision.
        classes: how many positions the output has.
    """

    evidence: Evidence
    counts: Mapping[FlipRule, NDArray[np.int64]] = field(default_factory=dict)
    classes: int = 0


def confusion(evidence: Evidence, baseline: NDArray[Any], candidate: NDArray[Any], labels: NDArray[Any] | None) -> Confusion:
    """Counts a batch.

    Args:
        evidence: of the batch.
        baseline: `[n, ...]` predictions, n at least 1.
        candidate: `[n, ...]` predictions of the same shape.
        labels: `[n, ...]`; None where there are none that this output goes with.
    """
    b, c = rows(baseline), rows(candidate)
    size = b[0].size
    counts: dict[FlipRule, NDArray[np.int64]] = {}
    if labels is not None and evidence.real and evidence.classes and size <= MOST_CLASSES:
        truth = label_classes(labels)
        counts["argmax"] = np.stack([_count(truth, p.argmax(axis=1), size) for p in (b, c)])
    if labels is not None and evidence.real and evidence.zero_one and size == 1:
        truth = rows(labels).reshape(-1).astype(np.int64)
        for rule, bound in _BOUNDS.items():
            counts[rule] = np.stack([_count(truth, (p.reshape(-1) > bound).astype(np.int64), 2) for p in (b, c)])
    return Confusion(evidence, counts, size)


def merge_confusion(parts: Iterable[Confusion]) -> Confusion:
    """The counts over the examples of all parts, at least one, together."""

    def two(a: Confusion, b: Confusion) -> Confusion:
        both = [rule for rule in a.counts if rule in b.counts]
        return Confusion(a.evidence & b.evidence, {rule: a.counts[rule] + b.counts[rule] for rule in both}, max(a.classes, b.classes))

    return reduce(two, parts)


def confusion_document(found: Confusion) -> tuple[ConfusionMatrix | None, str]:
    """The matrix by the rule that all examples together tell, or None, and why there is none."""
    rule = found.evidence.rule
    counts = None if rule is None else found.counts.get(rule)
    if counts is not None:
        baseline, candidate = (tuple(map(tuple, matrix)) for matrix in counts.tolist())
        return ConfusionMatrix(baseline=baseline, candidate=candidate), ""
    if rule is None:
        return None, "its labels are no classes, so predictions decide for none"
    if rule == "values":
        return None, "its predictions aren't real numbers"
    if rule == "argmax":
        return None, f"it has {found.classes} classes, and a matrix of more than {MOST_CLASSES} can't be read"
    return None, "an example has several labels of 0 or 1"


def label_classes(labels: NDArray[Any]) -> NDArray[np.int64]:
    """The class `[n]` of each label, given as its number or as all classes with a single 1 among 0s."""
    values = rows(labels)
    classes: NDArray[np.int64] = values.argmax(axis=1) if values.shape[1] > 1 else values[:, 0]
    return classes.astype(np.int64)


def _count(truth: NDArray[np.int64], decided: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    return np.bincount(truth * classes + decided, minlength=classes * classes).reshape(classes, classes)

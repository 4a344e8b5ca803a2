"""How far the candidate's predictions are from the baseline's: decisions that flip, and errors of the output values.

What a decision is, is told by the labels and the predictions of all the data (`FlipRule`): a rule counts only if everything
seen allows it, so all rules are counted side by side and the choice is made in the end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.components.edge_validator.statistics.per_example import rows
from tfx_edge.schemas.statistics import FlipRule, OutputDrift


@dataclass(frozen=True)
class Evidence:
    """What all labels and predictions of an output have in common so far.

    Attributes:
        real: predictions are floating point.
        classes: each label is a class: its number, or all classes with a single 1 among 0s.
        zero_one: as many labels as predictions, each 0 or 1.
        probabilities: no prediction is outside 0 to 1.
    """

    real: bool = True
    classes: bool = True
    zero_one: bool = True
    probabilities: bool = True

    @property
    def rule(self) -> FlipRule | None:
        if not self.real:
            return "values"
        if self.classes:
            return "argmax"
        if self.zero_one:
            return "above 0.5" if self.probabilities else "above 0"
        return None

    def __and__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.real and other.real,
            self.classes and other.classes,
            self.zero_one and other.zero_one,
            self.probabilities and other.probabilities,
        )


RULES: tuple[FlipRule, ...] = ("argmax", "above 0.5", "above 0", "values")


@dataclass(frozen=True)
class Drift:
    """Of one output over some examples, in a form that merges.

    Attributes:
        examples: how many.
        values: how many numbers the output has in all of them.
        flips: examples that flip by each of the rules argmax, above 0.5, above 0, values.
        error: sum of the absolute errors.
        worst: the largest absolute error.
        signal: sum of baseline².
        noise: sum of (candidate - baseline)².
        evidence: what tells the rule.
    """

    examples: int = 0
    values: int = 0
    flips: tuple[int, ...] = (0, 0, 0, 0)
    error: float = 0.0
    worst: float = 0.0
    signal: float = 0.0
    noise: float = 0.0
    evidence: Evidence = Evidence()


class BatchDrift:
    """One output of a batch, example by example.

    Attributes:
        evidence: what tells the rule of a flip.
        flips: `[n, 4]`, whether an example flips by each of the rules of `RULES`.
        errors: `[n, 4]`, sum and largest of the absolute errors, sum of baseline² and of the squared errors; 0 where predictions
            aren't real numbers.
    """

    def __init__(self, baseline: NDArray[Any], candidate: NDArray[Any], labels: NDArray[Any] | None) -> None:
        """Compares.

        Args:
            baseline: `[n, ...]` predictions, n at least 1.
            candidate: `[n, ...]` predictions of the same shape.
            labels: `[n, ...]`; None where there are none that this output goes with.
        """
        b, c = rows(baseline), rows(candidate)
        real = b.dtype.kind == "f" and c.dtype.kind == "f"
        self.evidence = _evidence(b, c, None if labels is None else rows(labels), real)
        self._size = b[0].size
        self.flips = _flips(b, c, real)
        self.errors = np.zeros((len(b), 4))
        if real:
            signal = b.reshape(len(b), -1).astype(np.float64)
            error = np.abs(c.reshape(len(c), -1).astype(np.float64) - signal)
            self.errors = np.stack([error.sum(1), error.max(1), (signal**2).sum(1), (error**2).sum(1)], axis=1)

    def over(self, examples: NDArray[np.int64]) -> Drift:
        """The drift over some of the examples, by position."""
        if not len(examples):
            return Drift(evidence=self.evidence)
        errors = self.errors[examples]
        error, _, signal, noise = errors.sum(axis=0).tolist()
        return Drift(
            examples=len(examples),
            values=len(examples) * self._size,
            flips=tuple(self.flips[examples].sum(axis=0).tolist()),
            error=error,
            worst=float(errors[:, 1].max()),
            signal=signal,
            noise=noise,
            evidence=self.evidence,
        )


def merge_drift(parts: Iterable[Drift]) -> Drift:
    """The drift over the examples of all parts together."""

    def two(a: Drift, b: Drift) -> Drift:
        return Drift(
            examples=a.examples + b.examples,
            values=a.values + b.values,
            flips=tuple(x + y for x, y in zip(a.flips, b.flips, strict=True)),
            error=a.error + b.error,
            worst=max(a.worst, b.worst),
            signal=a.signal + b.signal,
            noise=a.noise + b.noise,
            evidence=a.evidence & b.evidence,
        )

    return reduce(two, parts, Drift())


def drift_document(output: str | None, drift: Drift, evidence: Evidence) -> OutputDrift:
    """The drift in one slice; the evidence is that of all the data."""
    rule = evidence.rule
    return OutputDrift(
        output=output,
        examples=drift.examples,
        flip_rule=rule,
        flips=None if rule is None else drift.flips[RULES.index(rule)],
        mean_abs_error=drift.error / drift.values if evidence.real and drift.values else None,
        worst_abs_error=drift.worst if evidence.real and drift.values else None,
        sqnr_db=sqnr_db(drift.signal, drift.noise),
    )


def sqnr_db(signal: float, noise: float) -> float | None:
    """10·log10 of signal over noise, both sums of squares; None where one of them is 0.

    >>> sqnr_db(100.0, 1.0)
    20.0
    """
    return float(10 * (np.log10(signal) - np.log10(noise))) if signal > 0 and noise > 0 else None


def _evidence(baseline: NDArray[Any], candidate: NDArray[Any], labels: NDArray[Any] | None, real: bool) -> Evidence:
    if labels is None or labels.dtype.kind not in "fiub" or baseline.ndim != 2:
        return Evidence(real=real, classes=False, zero_one=False)
    classes = baseline.shape[1]
    zero_one = labels.shape == baseline.shape and bool(((labels == 0) | (labels == 1)).all())
    number = labels.shape[1:] == (1,) and bool(((labels >= 0) & (labels < classes) & (labels == np.floor(labels))).all())
    one_hot = zero_one and bool((labels.sum(axis=1) == 1).all())
    return Evidence(
        real=real,
        classes=classes > 1 and (number or one_hot),
        zero_one=zero_one,
        probabilities=real and all(bool(((p >= 0) & (p <= 1)).all()) for p in (baseline, candidate)),
    )


def _flips(baseline: NDArray[Any], candidate: NDArray[Any], real: bool) -> NDArray[np.bool_]:
    b, c = (p.reshape(len(p), -1) for p in (baseline, candidate))
    differ = np.asarray((b != c).any(axis=1), bool)
    if not real:
        return np.stack([np.zeros_like(differ)] * 3 + [differ], axis=1)
    above = [((b > bound) != (c > bound)).any(axis=1) for bound in (0.5, 0.0)]
    return np.stack([b.argmax(axis=1) != c.argmax(axis=1), *above, differ], axis=1)

"""The mean of a value over examples, with what its uncertainty needs, in a form that merges.

Merging is associative and commutative up to rounding, with `EMPTY` as its neutral element. Deviations are kept from the mean,
not as raw sums, so nothing cancels where the mean is large beside the spread (Chan, Golub and LeVeque, "Updating formulae and
a pairwise algorithm for computing sample variances", 1979; here with weights).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Moments:
    """Of values x with example weights w.

    Attributes:
        examples: those with a weight other than 0.
        weight: sum of w.
        squared_weight: sum of w².
        mean: sum of w·x over `weight`; 0 without examples.
        first: sum of w²·(x - mean); 0 where all weights are equal.
        second: sum of w²·(x - mean)².
        zero_one: every x was 0 or 1.
    """

    examples: int = 0
    weight: float = 0.0
    squared_weight: float = 0.0
    mean: float = 0.0
    first: float = 0.0
    second: float = 0.0
    zero_one: bool = True

    @property
    def effective(self) -> float:
        """The number of equally weighted examples that say as much (Kish, "Survey Sampling", 1965); `examples` where w is 1."""
        return self.weight**2 / self.squared_weight if self.squared_weight > 0 else 0.0

    def second_about(self, center: float) -> float:
        """Sum of w²·(x - center)²."""
        shift = self.mean - center
        return self.second + 2 * self.first * shift + self.squared_weight * shift**2

    def scaled(self, factor: float) -> "Moments":
        """What as many examples times `factor`, of the same distribution, would be expected to give."""
        return Moments(
            examples=round(self.examples * factor),
            weight=self.weight * factor,
            squared_weight=self.squared_weight * factor,
            mean=self.mean,
            first=self.first * factor,
            second=self.second * factor,
            zero_one=self.zero_one,
        )


EMPTY = Moments()


def moments(values: NDArray[Any], weights: NDArray[Any] | None = None) -> Moments:
    """The moments of some values.

    Args:
        values: `[n]`, any real type; computed with in float64.
        weights: `[n]`, none below 0; None for 1 each.

    >>> moments(np.array([1.0, 0.0, 1.0, 1.0])).mean
    0.75
    """
    x = np.asarray(values, np.float64)
    w = np.ones_like(x) if weights is None else np.asarray(weights, np.float64)
    x, w = x[w != 0], w[w != 0]
    if len(x) == 0:
        return EMPTY
    weight, squared = float(w.sum()), w * w
    # About a value of the data first: the sum of large values that are nearly equal would round.
    mean = float(x[0] + (w * (x - x[0])).sum() / weight)
    deviation = x - mean
    return Moments(
        examples=len(x),
        weight=weight,
        squared_weight=float(squared.sum()),
        mean=mean,
        first=float((squared * deviation).sum()),
        second=float((squared * deviation * deviation).sum()),
        zero_one=bool(((x == 0) | (x == 1)).all()),
    )


def merge(parts: Iterable[Moments]) -> Moments:
    """The moments over the examples of all parts together."""
    return reduce(_merge_two, parts, EMPTY)


def _merge_two(a: Moments, b: Moments) -> Moments:
    if not a.examples or not b.examples:
        return a if a.examples else b
    weight = a.weight + b.weight
    mean = a.mean + (b.mean - a.mean) * (b.weight / weight)
    return Moments(
        examples=a.examples + b.examples,
        weight=weight,
        squared_weight=a.squared_weight + b.squared_weight,
        mean=mean,
        first=sum(m.first + m.squared_weight * (m.mean - mean) for m in (a, b)),
        second=sum(m.second_about(mean) for m in (a, b)),
        zero_one=a.zero_one and b.zero_one,
    )

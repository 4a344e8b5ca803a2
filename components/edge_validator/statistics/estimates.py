"""From moments to what is known of the value behind them: an interval at any confidence, and the p-value of a bound.

A mean has Student's interval. A share (every value 0 or 1) needs another: where none of 400 examples differs, Student's
interval has no width, though the next 400 may differ. Shares get pseudo-examples, which mend that:

- a difference of paired shares: half an example in each of the four cells, so 1/2 of +1 and of -1 and 1 of 0 (Agresti and Min,
  "Simple improved confidence intervals for comparing matched proportions", Statistics in Medicine 24, 2005);
- one share: two successes and two failures (Agresti and Coull, "Approximate is better than 'exact' for interval estimation of
  binomial proportions", The American Statistician 52, 1998).

With example weights the variance is that of a ratio estimator, sum of w²(x - mean)² over (sum of w)² (Cochran, "Sampling
Techniques", 1977, chapter 6), and a pseudo-example weighs what an effective example does.
"""

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

from tfx_edge.components.edge_validator.statistics.moments import Moments
from tfx_edge.components.edge_validator.statistics.paired import Paired
from tfx_edge.schemas.statistics import Interval, Method

# Relative to a metric's root mean square: what TFMA's float32 sums over some million examples may lose.
_ROUNDING = 1e-5

# Pseudo-examples: value and count.
_MATCHED = ((1.0, 0.5), (-1.0, 0.5), (0.0, 1.0))
_SINGLE = ((1.0, 2.0), (0.0, 2.0))


@dataclass(frozen=True)
class Estimate:
    """A value measured on a sample, and how well it is known.

    Attributes:
        value: as measured.
        center: of the interval; differs from `value` by the pseudo-examples of a share.
        error: standard error; infinite where too few examples tell nothing.
        freedom: degrees of freedom of Student's distribution; infinite for the normal one.
        method: how it came about.
    """

    value: float
    center: float
    error: float
    freedom: float
    method: Method

    def interval(self, confidence: float) -> Interval:
        """The two-sided interval, for a confidence between 0 and 1."""
        width = self._quantile((1 + confidence) / 2) * self.error
        known = math.isfinite(width) and math.isfinite(self.center)
        return Interval(
            low=self.center - width if known else None,
            high=self.center + width if known else None,
            confidence=confidence,
            method=self.method,
        )

    def p_value(self, bound: float, side: Literal["above", "below"]) -> float:
        """Of the hypothesis that the true value is not on this side of a bound: small where the data speak against it.

        It is at most (1 - confidence) / 2 exactly where `interval(confidence)` lies wholly on this side.
        """
        distance = self.center - bound if side == "above" else bound - self.center
        if not (math.isfinite(distance) and self.error >= 0):
            return 1.0  # NaN: nothing is known
        if self.error == 0:
            return 0.0 if distance >= 0 else 1.0
        if not math.isfinite(self.error):
            return 1.0
        statistic = distance / self.error
        return float(special.ndtr(-statistic) if math.isinf(self.freedom) else special.stdtr(self.freedom, -statistic))

    def _quantile(self, probability: float) -> float:
        if not math.isfinite(self.error):
            return 1.0  # the width is infinite anyway
        return float(special.ndtri(probability) if math.isinf(self.freedom) else special.stdtrit(self.freedom, probability))


def difference(comparison: Paired, factor: float = 1) -> Estimate:
    """The mean of candidate minus baseline.

    Args:
        comparison: of both models on the same examples.
        factor: as if there were this many times the examples, with the same mean and variance.
    """
    share = comparison.baseline.zero_one and comparison.candidate.zero_one
    sample = comparison.difference.scaled(factor)
    return _with_pseudo_examples(sample, _MATCHED, "agresti_min") if share else _student(sample, "paired_t")


def candidate(comparison: Paired, factor: float = 1) -> Estimate:
    """The candidate's own mean; arguments as of `difference`."""
    sample = comparison.candidate.scaled(factor)
    return _with_pseudo_examples(sample, _SINGLE, "agresti_coull") if sample.zero_one else _student(sample, "t")


def from_resamples(value: float, error: float, *, freedom: float, factor: float = 1) -> Estimate:
    """The estimate of a value whose standard error is the standard deviation over resamples.

    Args:
        value: on the data as they are.
        error: standard deviation over the resamples.
        freedom: resamples less one.
        factor: as if there were this many times the examples.
    """
    return Estimate(value, value, error / math.sqrt(factor), freedom, "poisson_bootstrap")


def agrees(sample: Moments, value: float | None) -> bool:
    """Whether a mean is TFMA's value of the metric, but for rounding; if not, an interval around it says nothing of the metric."""
    if value is None or not sample.examples:
        return False
    size = math.sqrt(sample.second_about(0) / sample.squared_weight)
    return abs(sample.mean - value) <= _ROUNDING * max(size, abs(value))


def _student(sample: Moments, method: Method) -> Estimate:
    n = sample.examples
    if n < 2:
        return Estimate(sample.mean, sample.mean, math.inf, 1.0, method)
    error = math.sqrt(max(sample.second, 0.0) * n / (n - 1)) / sample.weight
    return Estimate(sample.mean, sample.mean, error, max(sample.effective - 1, 1.0), method)


def _with_pseudo_examples(sample: Moments, added: tuple[tuple[float, float], ...], method: Method) -> Estimate:
    if not sample.examples:
        return Estimate(0.0, 0.0, math.inf, math.inf, method)
    unit = sample.squared_weight / sample.weight  # the weight of an effective example
    weight = sample.weight + unit * sum(count for _, count in added)
    center = (sample.weight * sample.mean + unit * sum(count * value for value, count in added)) / weight
    squares = sample.second_about(center) + unit**2 * sum(count * (value - center) ** 2 for value, count in added)
    return Estimate(sample.mean, center, math.sqrt(squares) / weight, math.inf, method)

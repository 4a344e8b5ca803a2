"""How often the gate's 95 % intervals hold the true difference, by simulation: as often as they say, neither less nor more."""

import statistics
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.figure import Figure
from tfx_edge.components.edge_validator.statistics.estimates import Estimate, difference, from_resamples
from tfx_edge.components.edge_validator.statistics.paired import merge_paired, paired

CONFIDENCE = 0.95
EXAMPLES, EVALUATIONS, SEEDS = 400, 1000, 5
RESAMPLES = 20  # as TFMA draws
_HALF = EXAMPLES // 2

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Estimate]


def figures() -> Iterator[Figure]:
    """Coverage over 1,000 simulated evaluations of 400 examples, for each kind of metric."""
    for name, (truth, draw) in cases().items():
        shares = [coverage(truth, draw, seed) for seed in range(SEEDS)]
        value, spread = statistics.median(shares), (min(shares), max(shares))
        yield Figure(f"coverage.{name}", value, "of 95 % intervals", 0.93, "higher", spread, SEEDS)
        yield Figure(f"coverage.{name}.at_most", value, "of 95 % intervals", 0.97, "lower", spread, SEEDS)


def coverage(truth: float, draw: Draw, seed: int, evaluations: int = EVALUATIONS) -> float:
    """Share of simulated evaluations whose interval holds the truth."""
    rng = np.random.default_rng(seed)
    intervals = (draw(rng).interval(CONFIDENCE) for _ in range(evaluations))
    return sum(i.low is not None and i.high is not None and i.low <= truth <= i.high for i in intervals) / evaluations


def cases() -> dict[str, tuple[float, Draw]]:
    """True difference and one simulated evaluation, for each kind of metric."""
    return {
        "accuracy": (-0.01, lambda rng: _accuracy(rng, lost=0.03, won=0.02)),
        "accuracy_few_differ": (-0.01, lambda rng: _accuracy(rng, lost=0.015, won=0.005)),
        "squared_error": (0.05**2 + 0.1**2, _squared_error),
        "crossentropy": (float(np.exp(0.2**2 / 2)) - 1, _crossentropy),
        "weighted_error": (0.05**2 + 0.1**2, _weighted_error),
        "bootstrap.precision": (_truth(_precision), lambda rng: _bootstrap(rng, _precision)),
        "bootstrap.root_mean_squared_error": (_truth(_root_mean_squared_error), lambda rng: _bootstrap(rng, _root_mean_squared_error)),
    }


def _accuracy(rng: np.random.Generator, lost: float, won: float) -> Estimate:
    """Both right or both wrong but for some examples, which the candidate loses or wins."""
    u = rng.random(EXAMPLES)
    baseline = np.where(u < lost, 1.0, np.where(u < lost + won, 0.0, rng.random(EXAMPLES) < 0.9))
    candidate = np.where(u < lost, 0.0, np.where(u < lost + won, 1.0, baseline))
    return _estimate(baseline, candidate)


def _squared_error(rng: np.random.Generator) -> Estimate:
    error = rng.normal(size=EXAMPLES)
    return _estimate(error**2, (error + rng.normal(0.05, 0.1, EXAMPLES)) ** 2)


def _crossentropy(rng: np.random.Generator) -> Estimate:
    loss = rng.exponential(size=EXAMPLES)
    return _estimate(loss, loss * rng.lognormal(0, 0.2, EXAMPLES))


def _weighted_error(rng: np.random.Generator) -> Estimate:
    error = rng.normal(size=EXAMPLES)
    return _estimate(error**2, (error + rng.normal(0.05, 0.1, EXAMPLES)) ** 2, rng.uniform(0.5, 2, EXAMPLES))


def _estimate(baseline: Values, candidate: Values, weights: Values | None = None) -> Estimate:
    """As the gate gets it: in two parts, merged."""
    parts = [slice(None, _HALF), slice(_HALF, None)]
    return difference(merge_paired(paired(baseline[p], candidate[p], None if weights is None else weights[p]) for p in parts))


Metric = Callable[[Values, Values, Values], Values]  # labels [n], predictions [n], weights [..., n] to [...]


def _precision(labels: Values, predictions: Values, weights: Values) -> Values:
    positive = predictions > 0.5
    share: Values = (weights * (labels * positive)).sum(-1) / (weights * positive).sum(-1)
    return share


def _root_mean_squared_error(labels: Values, predictions: Values, weights: Values) -> Values:
    root: Values = np.sqrt((weights * (labels - predictions) ** 2).sum(-1) / weights.sum(-1))
    return root


def _predictions(rng: np.random.Generator, count: int) -> tuple[Values, Values, Values]:
    """Labels, the baseline's predictions and the candidate's, which are close to them and a little worse."""
    labels = rng.integers(2, size=count).astype(np.float64)
    baseline = rng.normal(0.3 + 0.4 * labels, 0.25)
    return labels, baseline, baseline + rng.normal(0.01 * (1 - 2 * labels), 0.05)


def _truth(metric: Metric) -> float:
    labels, baseline, candidate = _predictions(np.random.default_rng(99), 2_000_000)
    once = np.ones(len(labels))
    return float(metric(labels, candidate, once) - metric(labels, baseline, once))


def _bootstrap(rng: np.random.Generator, metric: Metric) -> Estimate:
    """The Poisson bootstrap, the same weights for both models, as TFMA does it."""
    labels, baseline, candidate = _predictions(rng, EXAMPLES)
    once, weights = np.ones(EXAMPLES), rng.poisson(1, (RESAMPLES, EXAMPLES)).astype(np.float64)
    value, resampled = (metric(labels, candidate, w) - metric(labels, baseline, w) for w in (once, weights))
    return from_resamples(float(value), float(np.std(resampled, ddof=1)), freedom=RESAMPLES - 1)

"""How well a metric's difference is known: from the examples where the metric is a mean over them, otherwise from TFMA's resamples."""

from collections.abc import Callable

from tfx_edge.components.edge_validator.statistics.estimates import Estimate, agrees, difference
from tfx_edge.components.edge_validator.statistics.paired import from_document
from tfx_edge.components.edge_validator.statistics.per_example import per_example
from tfx_edge.schemas import GateConfig, Metric, PairedMean

# The estimate from `factor` times the examples, as if the further ones were like those that there are.
EstimateFrom = Callable[[float], Estimate]


def resamples(config: GateConfig) -> bool:
    """Whether a confidence is asked for of a metric that isn't a mean over examples, which takes resampling."""
    return config.confidence is not None and any(t.max_drop is not None and not is_mean(t) for t in config.thresholds)


def is_mean(metric: Metric) -> bool:
    """Whether a metric is the mean of a value of each example. One that looks at several classes or at whole queries isn't."""
    selects = metric.top_k is not None or metric.average is not None or metric.query_key is not None
    return not selects and per_example(metric.metric, metric.config, metric.class_id) is not None


def paired_estimate(mean: PairedMean | None, baseline: float | None, candidate: float | None) -> EstimateFrom | None:
    """The estimate of a difference from the examples; None where their means aren't the values that TFMA measured.

    Args:
        mean: the metric of both models, example by example.
        baseline: TFMA's value.
        candidate: TFMA's value.
    """
    if mean is None:
        return None
    comparison = from_document(mean)
    if not (agrees(comparison.baseline, baseline) and agrees(comparison.candidate, candidate)):
        return None
    return lambda factor: difference(comparison, factor)

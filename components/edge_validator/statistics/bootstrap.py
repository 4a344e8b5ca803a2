"""Estimates of metrics that are no means over examples (AUC, Precision, F1, RMSE), from TFMA's Poisson bootstrap.

TFMA computes every metric again on 20 resamples of the data, the same resample for both models, so the spread of a difference
is that of paired predictions, not of two independent samples. Each resample costs as much as the evaluation itself: turn it on
only where a threshold needs it.
"""

import math
from collections.abc import Callable

from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2

from tfx_edge.components.edge_validator.statistics.estimates import Estimate, from_resamples


def resample(config: config_pb2.EvalConfig) -> config_pb2.EvalConfig:
    """An EvalConfig with TFMA's Poisson bootstrap turned on.

    Its evaluators need a seed, or every run gives another interval: `tfma.default_evaluators(eval_config=config,
    eval_shared_model=models, schema=schema, random_seed_for_testing=seed)`.
    """
    changed = config_pb2.EvalConfig()
    changed.CopyFrom(config)
    changed.options.compute_confidence_intervals.value = True
    changed.options.confidence_intervals.method = config_pb2.ConfidenceIntervalOptions.POISSON_BOOTSTRAP
    return changed


def resampled_estimate(entry: metrics_for_slice_pb2.MetricsForSlice.MetricKeyAndValue) -> Callable[[float], Estimate] | None:
    """The estimate of one metric in a record of `tfma.load_metrics`, from any multiple of the examples.

    Returns:
        None where there is no interval: the value isn't one number, or the slice is so small that a resample missed it
        altogether, for which TFMA writes no standard error.
    """
    value, interval = entry.value, entry.confidence_interval
    if not (value.HasField("double_value") and interval.standard_error.HasField("double_value")):
        return None
    number, error = value.double_value.value, interval.standard_error.double_value.value
    if not (math.isfinite(number) and math.isfinite(error)):
        return None
    freedom = interval.degrees_of_freedom.value
    return lambda factor: from_resamples(number, error, freedom=freedom, factor=factor)

"""Estimates of metrics that are no means over examples (AUC, Precision, F1, RMSE), from TFMA's Poisson bootstrap.

TFMA computes every metric again on 20 resamples of the data, the same resample for both models, so the spread of a difference
is that of paired predictions, not of two independent samples. Each resample costs as much as the evaluation itself: turn it on
only where a threshold needs it.
"""

import math
from collections.abc import Iterator

from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2

from tfx_edge.components.edge_validator.statistics.estimates import Estimate, from_resamples

__all__ = ["BootstrapKey", "bootstrap_estimates", "from_resamples", "resample"]

# (TFMA's metric name, model, output or "", is it the difference to the baseline)
BootstrapKey = tuple[str, str, str, bool]


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


def bootstrap_estimates(record: metrics_for_slice_pb2.MetricsForSlice) -> dict[BootstrapKey, Estimate]:
    """The estimates in one record of `tfma.load_metrics`.

    Left out is what can't be an interval: metrics for a class or top k, values that aren't one number, and metrics of a slice
    so small that a resample missed it altogether, for which TFMA writes no standard error.
    """
    return dict(_estimates(record))


def _estimates(record: metrics_for_slice_pb2.MetricsForSlice) -> Iterator[tuple[BootstrapKey, Estimate]]:
    for entry in record.metric_keys_and_values:
        key, value, error = entry.key, entry.value, entry.confidence_interval.standard_error
        plain = not key.HasField("sub_key") and not key.HasField("aggregation_type")
        if not (plain and value.HasField("double_value") and error.HasField("double_value")):
            continue
        numbers = value.double_value.value, error.double_value.value
        if all(map(math.isfinite, numbers)):
            yield (
                (key.name, key.model_name, key.output_name, key.is_diff),
                from_resamples(*numbers, freedom=entry.confidence_interval.degrees_of_freedom.value),
            )

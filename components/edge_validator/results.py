"""What TFMA wrote, by slice and threshold."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import validation_result_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE, EXAMPLE_COUNT, metric_names
from tfx_edge.components.edge_validator.intervals import is_mean, paired_estimate
from tfx_edge.components.edge_validator.slices import is_evaluated
from tfx_edge.components.edge_validator.statistics.bootstrap import resampled_estimate
from tfx_edge.components.edge_validator.statistics.compare import read_statistics
from tfx_edge.components.edge_validator.verdict import Measured, SliceResult
from tfx_edge.schemas import GateConfig, Metric, PairedMean
from tfx_edge.schemas.metrics import is_comparison

_CHANGE = "candidate minus baseline"

_Key = tuple[Any, ...]  # name, model, output, class, top-k, average, k


def read_results(evaluation: str, config: GateConfig) -> list[SliceResult]:
    """Reads the metrics of an evaluation, in the slices that the config asks for.

    Args:
        evaluation: folder that TFMA and `ComparePredictions` wrote to.
        config: the config they ran with.
    """
    metrics = (*config.thresholds, *config.metrics)
    names = metric_names(config)
    statistics = {s.key: s for s in read_statistics(evaluation).slices}
    results = []
    for record in tfma.load_metrics(evaluation):
        key = slicer_lib.deserialize_slice_key(record.slice_key)
        if not is_evaluated(config, key):
            continue
        entries = {_key(entry.key): entry for entry in record.metric_keys_and_values}
        count = _number(entries.get((EXAMPLE_COUNT, CANDIDATE, next(iter(config.label_keys), ""), None, None, None, None)))
        found = statistics.get(key)
        means = found.means if found is not None else [None] * len(config.thresholds)
        results.append(
            SliceResult(
                key=key,
                examples=0 if count is None else round(count),
                metrics=tuple(_measured(name, metric, entries, mean) for name, metric, mean in zip_longest(names, metrics, means)),
                drift=found.drift if found is not None else (),
                weighted=found.weighted if found is not None else 0,  # a slice that only TFMA found has nothing to show
            )
        )
    return results


def _measured(name: str, metric: Metric, entries: Mapping[_Key, Any], mean: PairedMean | None) -> Measured:
    looks_at = metric.output or "", metric.class_id, metric.top_k, metric.average, None
    change = entries.get((name, _CHANGE, *looks_at))
    if is_comparison(metric.metric):
        return Measured(None, _number(change))
    baseline, candidate = (_number(entries.get((name, model, *looks_at))) for model in (BASELINE, CANDIDATE))
    if is_mean(metric):
        return Measured(baseline, candidate, paired_estimate(mean, baseline, candidate))
    return Measured(baseline, candidate, None if change is None else resampled_estimate(change))


def validation_faults(evaluation: str) -> list[str]:
    """What TFMA's own validation of an evaluation has against the candidate; empty when it passed."""
    return list(_faults(tfma.load_validation_result(evaluation)))


def _key(key: Any) -> _Key:
    """A metric's key as what is known of it beforehand: of both models' difference the model is `_CHANGE`."""
    sub = key.sub_key
    return (
        key.name,
        _CHANGE if key.is_diff else key.model_name,
        key.output_name,
        sub.class_id.value if sub.HasField("class_id") else None,
        sub.top_k.value if sub.HasField("top_k") else None,
        next((a for a in ("micro", "macro", "weighted_macro") if getattr(key.aggregation_type, f"{a}_average")), None),
        sub.k.value if sub.HasField("k") else None,
    )


def _number(entry: Any | None) -> float | None:
    """A metric's value; None where there is none, or it isn't one number."""
    return entry.value.double_value.value if entry is not None and entry.value.HasField("double_value") else None


def _faults(validation: validation_result_pb2.ValidationResult) -> Iterator[str]:
    if validation.validation_ok and not validation.rubber_stamp:
        return
    for for_slice in validation.metric_validations_per_slice:
        where = slicer_lib.stringify_slice_key(slicer_lib.deserialize_slice_key(for_slice.slice_key))
        for failure in for_slice.failures:
            value = failure.metric_value.double_value.value
            yield f"TFMA's validation: {failure.metric_key.name}, slice {where}: {value:.7g} misses its threshold"
    for spec in validation.missing_slices:
        yield f"TFMA's validation: slice {slicer_lib.SingleSliceSpec(spec=spec)} is missing"
    if validation.rubber_stamp:
        yield "TFMA's validation: rubber-stamped, so change thresholds weren't looked at"
    if not validation.metric_validations_per_slice and not validation.missing_slices and not validation.rubber_stamp:
        yield "TFMA's validation: failed and names no reason"

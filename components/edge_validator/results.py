"""What TFMA wrote, by slice and threshold."""

from collections.abc import Iterator

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import metrics_for_slice_pb2, validation_result_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from tfx_edge.components.edge_validator.eval_config import BASELINE, CANDIDATE, metric_names
from tfx_edge.components.edge_validator.verdict import Measured, SliceResult
from tfx_edge.schemas import GateConfig

_Values = dict[tuple[str, str, str], float | None]


def read_results(evaluation: str, config: GateConfig) -> list[SliceResult]:
    """Reads the metrics of an evaluation with the thresholds of a config.

    Args:
        evaluation: folder that TFMA wrote to.
        config: the config it ran with.
    """
    names = metric_names(config)
    results = []
    for record in tfma.load_metrics(evaluation):
        values = _values(record)
        count = values.get(("example_count", CANDIDATE, ""))
        results.append(
            SliceResult(
                key=slicer_lib.deserialize_slice_key(record.slice_key),
                examples=0 if count is None else round(count),
                metrics=tuple(
                    Measured(*(values.get((name, model, threshold.output or "")) for model in (BASELINE, CANDIDATE)))
                    for name, threshold in zip(names, config.thresholds, strict=True)
                ),
            )
        )
    return results


def validation_faults(evaluation: str) -> list[str]:
    """What TFMA's own validation of an evaluation has against the candidate; empty when it passed."""
    return list(_faults(tfma.load_validation_result(evaluation)))


def _values(record: metrics_for_slice_pb2.MetricsForSlice) -> _Values:
    """Plain metrics of both models by name, model and output; a value that isn't one number is None."""
    values: _Values = {}
    for entry in record.metric_keys_and_values:
        key, value = entry.key, entry.value
        # Differences, and variants of a metric for one class or top-k, have the metric's own name too.
        if key.is_diff or key.HasField("sub_key") or key.HasField("aggregation_type"):
            continue
        scalar = value.double_value.value if value.HasField("double_value") else None
        values[key.name, key.model_name, key.output_name] = scalar
    return values


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

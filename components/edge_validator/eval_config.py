"""The gate's config in TFMA's words.

TFMA validates with these thresholds too. Its verdict and ours must both be good, so its bounds are ours plus the slack that
`verdict.py` grants rounding.
"""

import difflib
import json
from collections.abc import Iterator

import tf_keras
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from tfx_edge.components.edge_validator.verdict import ROUNDING, gated_slices
from tfx_edge.schemas import EdgeError, GateConfig, Slice, Threshold

CANDIDATE = "candidate"
BASELINE = "baseline"
_MODELS = (CANDIDATE, BASELINE)
# Any type but tf_lite will do: TFMA refuses to mix tf_lite with SavedModels, and the predictions are our extractor's anyway.
_MODEL_TYPE = "tf_generic"
_EXAMPLE_COUNT = "example_count"


def eval_config(config: GateConfig) -> config_pb2.EvalConfig:
    """One EvalConfig for both models: every threshold on its slices, and the number of examples in each.

    Raises:
        EdgeError: there is no such metric, or it doesn't take its config.
    """
    metric_names(config)
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(name=CANDIDATE, model_type=_MODEL_TYPE, label_key=config.label_key),
            config_pb2.ModelSpec(name=BASELINE, model_type=_MODEL_TYPE, label_key=config.label_key, is_baseline=True),
        ],
        slicing_specs=[config_pb2.SlicingSpec(), *map(_slicing_spec, evaluated_slices(config))],
        metrics_specs=[
            config_pb2.MetricsSpec(metrics=[config_pb2.MetricConfig(class_name="ExampleCount")], model_names=_MODELS),
            *_metrics_specs(config),
        ],
    )


def metric_names(config: GateConfig) -> tuple[str, ...]:
    """TFMA's name of each threshold's metric, in the config's order.

    Results are found by these names, so two metrics under one name would be mistaken for each other.

    Raises:
        EdgeError: there is no such metric, it doesn't take its config, or two metrics have one name.
    """
    names = tuple(_instance_name(threshold) for threshold in config.thresholds)
    known: dict[tuple[str, str | None], Threshold] = {}
    for name, threshold in zip(names, config.thresholds, strict=True):
        other = known.setdefault((name, threshold.output), threshold)
        if name == _EXAMPLE_COUNT or (other.metric, other.config) != (threshold.metric, threshold.config):
            taken = "the number of examples" if name == _EXAMPLE_COUNT else f"metric {other.metric!r} with config {other.config}"
            raise EdgeError(
                f"metric {threshold.metric!r} with config {threshold.config}: its name {name!r} is that of {taken}; "
                "give it another config['name']"
            )
    return names


def evaluated_slices(config: GateConfig) -> tuple[Slice, ...]:
    """The slices to evaluate besides the overall one: the config's and the thresholds', each once."""
    every = [*config.slices, *(s for threshold in config.thresholds for s in threshold.slices or ())]
    return tuple(s for i, s in enumerate(every) if s not in every[:i])


def _instance_name(threshold: Threshold) -> str:
    known = {*metric_types.registered_metrics(), *(name for name, cls in vars(tf_keras.metrics).items() if isinstance(cls, type))}
    if threshold.metric not in known:
        similar = difflib.get_close_matches(threshold.metric, known, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else "name the class of one, for example 'SparseCategoricalAccuracy'"
        raise EdgeError(f"metric {threshold.metric!r}: TFMA and Keras have none of that name; {hint}")
    try:
        return str(metric_specs.metric_instance(_metric_config(threshold)).name)
    except Exception as error:  # the metric, or Keras for it, raises what it likes
        reason = " ".join(str(error).rpartition("Exception encountered:")[2].split())
        raise EdgeError(f"metric {threshold.metric!r} with config {threshold.config}: {reason}; give it arguments that it has") from error


def _metrics_specs(config: GateConfig) -> Iterator[config_pb2.MetricsSpec]:
    """One spec a metric and output, which TFMA then computes once, with the bounds of all thresholds on it."""
    metrics: dict[tuple[str, str | None], config_pb2.MetricsSpec] = {}
    for threshold in config.thresholds:
        key = threshold.name, threshold.output
        if key not in metrics:
            outputs = [threshold.output] if threshold.output else []
            metrics[key] = config_pb2.MetricsSpec(metrics=[_metric_config(threshold)], model_names=_MODELS, output_names=outputs)
        metrics[key].metrics[0].per_slice_thresholds.append(
            config_pb2.PerSliceMetricThreshold(
                # TFMA's plain `threshold` would hold in every slice, those of other thresholds too.
                slicing_specs=[config_pb2.SlicingSpec() if s is None else _slicing_spec(s) for s in gated_slices(config, threshold)],
                threshold=_bounds(threshold),
            )
        )
    yield from metrics.values()


def _metric_config(threshold: Threshold) -> config_pb2.MetricConfig:
    return config_pb2.MetricConfig(class_name=threshold.metric, config=json.dumps(threshold.config, sort_keys=True))


def _slicing_spec(slice_: Slice) -> config_pb2.SlicingSpec:
    return config_pb2.SlicingSpec(feature_keys=slice_.feature_keys, feature_values=slice_.feature_values)


def _bounds(threshold: Threshold) -> config_pb2.MetricThreshold:
    bounds = config_pb2.MetricThreshold()
    if threshold.lower_bound is not None:
        bounds.value_threshold.lower_bound.value = threshold.lower_bound - ROUNDING * abs(threshold.lower_bound)
    if threshold.upper_bound is not None:
        bounds.value_threshold.upper_bound.value = threshold.upper_bound + ROUNDING * abs(threshold.upper_bound)
    if threshold.max_drop is not None:
        change = bounds.change_threshold
        change.direction = config_pb2.MetricDirection.HIGHER_IS_BETTER if threshold.rises else config_pb2.MetricDirection.LOWER_IS_BETTER
        change.absolute.value = (threshold.max_drop + ROUNDING) * (-1 if threshold.rises else 1)
    return bounds

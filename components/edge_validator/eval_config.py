"""The gate's config in TFMA's words.

TFMA validates with these thresholds too. Its verdict and ours must both be good, so its bounds are ours plus the slack that
`verdict.py` grants rounding.
"""

import difflib
import json
from collections.abc import Collection, Iterator
from typing import Any

import tf_keras
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from tfx_edge.components.edge_validator.intervals import resamples
from tfx_edge.components.edge_validator.slices import evaluated_slices, gated_slices, typed
from tfx_edge.components.edge_validator.statistics.bootstrap import resample
from tfx_edge.components.edge_validator.verdict import ROUNDING
from tfx_edge.schemas import EdgeError, GateConfig, Metric, Slice, Threshold
from tfx_edge.schemas.metrics import is_comparison

CANDIDATE = "candidate"
BASELINE = "baseline"
_MODELS = (CANDIDATE, BASELINE)
# Any type but tf_lite will do: TFMA refuses to mix tf_lite with SavedModels, and the predictions are our extractor's anyway.
_MODEL_TYPE = "tf_generic"
EXAMPLE_COUNT = "example_count"


def eval_config(config: GateConfig, text_features: Collection[str] = ()) -> config_pb2.EvalConfig:
    """One EvalConfig for both models: every metric, the thresholds on their slices, and the number of examples in each.

    Args:
        config: the gate's.
        text_features: those that hold text. TFMA takes a slice's value that reads as a number for one, and so never finds it
            in text: such a slice is evaluated as one of every value, and its thresholds are left to our verdict.

    Raises:
        EdgeError: there is no such metric, or it doesn't take its config.
    """
    metric_names(config)
    options = config_pb2.Options()
    options.include_default_metrics.value = False
    converted = config_pb2.EvalConfig(
        model_specs=[_model_spec(config, CANDIDATE), _model_spec(config, BASELINE, is_baseline=True)],
        slicing_specs=[config_pb2.SlicingSpec(), *(_slicing_spec(s, text_features) for s in evaluated_slices(config))],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=[config_pb2.MetricConfig(class_name="ExampleCount", config=json.dumps({"name": EXAMPLE_COUNT}))],
                model_names=_MODELS,
                example_weights=config_pb2.ExampleWeightOptions(unweighted=True),
                output_names=list(config.label_keys)[:1],
            ),
            *_metrics_specs(config, text_features),
        ],
        options=options,
    )
    return resample(converted) if resamples(config) else converted


def metric_names(config: GateConfig) -> tuple[str, ...]:
    """TFMA's name of the metric of each threshold and then of each of the config's metrics, in the config's order.

    Results are found by these names, so two metrics under one name would be mistaken for each other.

    Raises:
        EdgeError: there is no such metric, it doesn't take its config, or two metrics have one name.
    """
    every = (*config.thresholds, *config.metrics)
    names = tuple(map(_instance_name, every))
    known: dict[tuple[Any, ...], Metric] = {}
    for name, metric in zip(names, every, strict=True):
        other = known.setdefault((name, *metric.selection), metric)
        if name == EXAMPLE_COUNT or (other.metric, other.config) != (metric.metric, metric.config):
            taken = "the number of examples" if name == EXAMPLE_COUNT else f"metric {other.metric!r} with config {other.config}"
            raise EdgeError(
                f"metric {metric.metric!r} with config {metric.config}: its name {name!r} is that of {taken}; "
                "give it another config['name']"
            )
    return names


def _model_spec(config: GateConfig, name: str, *, is_baseline: bool = False) -> config_pb2.ModelSpec:
    return config_pb2.ModelSpec(
        name=name,
        model_type=_MODEL_TYPE,
        is_baseline=is_baseline,
        label_key=config.label_key,
        label_keys=config.label_keys,
        example_weight_key=config.example_weight_key,
    )


def _instance_name(metric: Metric) -> str:
    known = {*metric_types.registered_metrics(), *(name for name, cls in vars(tf_keras.metrics).items() if isinstance(cls, type))}
    if metric.metric not in known:
        similar = difflib.get_close_matches(metric.metric, known, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else "name the class of one, for example 'SparseCategoricalAccuracy'"
        raise EdgeError(f"metric {metric.metric!r}: TFMA and Keras have none of that name; {hint}")
    try:
        return str(metric_specs.metric_instance(_metric_config(metric)).name)
    except Exception as error:  # the metric, or Keras for it, raises what it likes
        reason = " ".join(str(error).rpartition("Exception encountered:")[2].split())
        raise EdgeError(f"metric {metric.metric!r} with config {metric.config}: {reason}; give it arguments that it has") from error


def _metrics_specs(config: GateConfig, text_features: Collection[str]) -> Iterator[config_pb2.MetricsSpec]:
    """One spec a metric and what it looks at, which TFMA then computes once, with the bounds of all thresholds on it."""
    specs: dict[tuple[Any, ...], config_pb2.MetricsSpec] = {}
    for metric in (*config.thresholds, *config.metrics):
        spec = specs.setdefault((metric.name, *metric.selection), _metrics_spec(metric))
        if isinstance(metric, Threshold) and not is_comparison(metric.metric):
            slices = [s for s in gated_slices(config, metric) if s is None or not _numbers_in_text(s, text_features)]
            if slices:  # TFMA's plain `threshold` would hold in every slice, those of other thresholds too
                spec.metrics[0].per_slice_thresholds.append(
                    config_pb2.PerSliceMetricThreshold(
                        slicing_specs=[config_pb2.SlicingSpec() if s is None else _slicing_spec(s, text_features) for s in slices],
                        threshold=_bounds(metric),
                    )
                )
    yield from specs.values()


def _metrics_spec(metric: Metric) -> config_pb2.MetricsSpec:
    spec = config_pb2.MetricsSpec(metrics=[_metric_config(metric)], model_names=_MODELS, query_key=metric.query_key)
    if metric.output is not None:
        spec.output_names.append(metric.output)
    if metric.class_id is not None:
        spec.binarize.class_ids.values.append(metric.class_id)
    if metric.top_k is not None:
        spec.binarize.top_k_list.values.append(metric.top_k)
    if metric.average is not None:
        setattr(spec.aggregate, f"{metric.average}_average", True)
        for class_id in metric.class_ids:
            spec.aggregate.class_weights[class_id] = 1.0
    return spec


def _metric_config(metric: Metric) -> config_pb2.MetricConfig:
    return config_pb2.MetricConfig(class_name=metric.metric, config=json.dumps(metric.config, sort_keys=True))


def _slicing_spec(slice_: Slice, text_features: Collection[str]) -> config_pb2.SlicingSpec:
    misread = _numbers_in_text(slice_, text_features)
    values = {feature: value for feature, value in slice_.feature_values.items() if feature not in misread}
    return config_pb2.SlicingSpec(feature_keys=[*slice_.feature_keys, *misread], feature_values=values)


def _numbers_in_text(slice_: Slice, text_features: Collection[str]) -> list[str]:
    return [f for f, value in slice_.feature_values.items() if f in text_features and not isinstance(typed(value), str)]


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

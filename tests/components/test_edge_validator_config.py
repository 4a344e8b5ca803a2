from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tensorflow_model_analysis.evaluators import metrics_validator
from tensorflow_model_analysis.metrics import metric_types
from tensorflow_model_analysis.proto import config_pb2
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import channel, standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.edge_validator.component import EdgeValidator
from tfx_edge.components.edge_validator.eval_config import eval_config, metric_names
from tfx_edge.components.edge_validator.slices import evaluated_slices
from tfx_edge.schemas import Budget, ConfigError, EdgeError, GateConfig, Slice, Threshold
from tfx_edge.schemas.artifact_types import EdgeReport

ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01)


def config(*thresholds: Threshold, **fields: Any) -> GateConfig:
    return GateConfig(label_key="label", thresholds=thresholds or (ACCURACY,), **fields)


def component(**changes: Any) -> EdgeValidator:
    inputs: dict[str, Any] = {
        "model": channel.Channel(standard_artifacts.Model),
        "baseline_model": channel.Channel(standard_artifacts.Model),
        "examples": channel.Channel(standard_artifacts.Examples),
        "transform_graph": channel.Channel(standard_artifacts.TransformGraph),
        "config": config(),
    }
    return EdgeValidator(**{**inputs, **changes})


def test_the_config_is_stored_as_json() -> None:
    assert GateConfig.from_json(component().exec_properties[keys.CONFIG]) == config()


def test_the_outputs_are_tfxs_own_and_the_report() -> None:
    assert {key: value.type for key, value in component().outputs.items()} == {
        "blessing": standard_artifacts.ModelBlessing,
        "evaluation": standard_artifacts.ModelEvaluation,
        "report": EdgeReport,
    }


def test_a_runtime_parameter_may_hold_the_config() -> None:
    parameter = RuntimeParameter("gate", str)
    assert component(config=parameter, baseline_model=None).exec_properties[keys.CONFIG] is parameter


def test_max_drop_without_a_baseline_is_an_error_where_the_pipeline_is_built() -> None:
    with pytest.raises(EdgeError, match="max_drop of SparseCategoricalAccuracy without baseline_model"):
        component(baseline_model=None)


def test_bounds_on_the_candidate_alone_can_be_built_without_a_baseline() -> None:
    component(baseline_model=None, config=config(Threshold(metric="AUC", lower_bound=0.5)))


def test_examples_of_unknown_features_are_an_error_where_the_pipeline_is_built() -> None:
    with pytest.raises(EdgeError, match="without transform_graph or schema"):
        component(transform_graph=None)


def test_a_metric_that_does_not_exist_is_an_error_where_the_pipeline_is_built() -> None:
    with pytest.raises(EdgeError, match=r"^metric 'SparseCategoricalAcuracy'.*did you mean 'SparseCategoricalAccuracy'.$"):
        component(config=config(Threshold(metric="SparseCategoricalAcuracy", lower_bound=0.5)))


@pytest.mark.parametrize("metric", ["AUC", "SparseTopKCategoricalAccuracy"])
def test_an_argument_that_a_metric_does_not_have_is_an_error(metric: str) -> None:
    with pytest.raises(EdgeError, match=f"^metric '{metric}' with config .*unexpected keyword argument 'kk'"):
        metric_names(config(Threshold(metric=metric, config={"kk": 3}, lower_bound=0.5)))


@pytest.mark.parametrize("build", [
    lambda: GateConfig(label_key="label", thresholds=()),
    lambda: GateConfig(label_key="label", thresholds=[Threshold(metric="AUC", lower_bound=0.5)], confidence=0.95),
    lambda: GateConfig(label_key="label", thresholds=[Threshold(metric="AUC", max_drop=0.1)], correction="holm"),
    lambda: Threshold(metric="AUC", max_drop=0.1, higher_is_better=False),
    lambda: Budget(operators=["conv_2d"]),
    lambda: Slice(feature_keys=["a", "a"]),
    lambda: Threshold(metric="AUC"),
    lambda: Threshold(metric="AUC", max_drop=-0.1),
    lambda: Threshold(metric="AUC", lower_bound=0.5, slices=()),
    lambda: Slice(),
    lambda: Slice(feature_keys=("digit",), feature_values={"digit": "3"}),
    lambda: config(*(Threshold(metric="SparseTopKCategoricalAccuracy", config={"k": k}, lower_bound=0.5) for k in (2, 3))),
])  # fmt: skip
def test_conditions_that_mean_nothing_are_an_error_at_once(build: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match=r"^[^\n]+$"):
        build()


def test_one_metric_in_two_configurations_needs_names() -> None:
    two = config(*(Threshold(metric="SparseTopKCategoricalAccuracy", config={"k": k, "name": f"top_{k}"}, lower_bound=0.5) for k in (2, 3)))
    assert metric_names(two) == ("top_2", "top_3")
    assert [m.class_name for s in eval_config(two).metrics_specs for m in s.metrics] == ["ExampleCount"] + [
        "SparseTopKCategoricalAccuracy"
    ] * 2


def test_slices_of_config_and_thresholds_are_evaluated_once_each() -> None:
    digit, city = Slice(feature_keys=("digit",)), Slice(feature_values={"city": "oslo"})
    conf = config(ACCURACY, Threshold(metric="AUC", lower_bound=0.5, slices=(city, digit)), slices=(digit,))
    assert evaluated_slices(conf) == (digit, city)
    assert len(eval_config(conf).slicing_specs) == 3


def validates(conf: GateConfig, baseline: float, candidate: float) -> bool:
    """TFMA's own verdict on a metric overall."""
    keys_ = [metric_types.MetricKey(metric_names(conf)[0], model_name=m) for m in ("baseline", "candidate")]
    values = dict(zip(keys_, (np.float32(baseline), np.float32(candidate)), strict=True))
    values[keys_[1].make_diff_key()] = values[keys_[1]] - values[keys_[0]]
    return bool(metrics_validator.validate_metrics(((), values), eval_config(conf)).validation_ok)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_tfma_too_passes_a_drop_of_exactly_max_drop_and_no_more(higher_is_better: bool) -> None:
    sign = 1 if higher_is_better else -1
    for right in range(1, 100, 7):
        for lost in (1, 3, 10):
            conf = config(Threshold(metric="MeanPrediction", max_drop=lost / 1000, higher_is_better=higher_is_better))
            better, exact, worse = ((900 + sign * n - right) / 1000 for n in (lost, 0, -1))
            assert validates(conf, better, exact), (right, lost)
            assert not validates(conf, better, worse), (right, lost)


def test_tfma_passes_a_value_on_its_bound() -> None:
    bounded = config(Threshold(metric="SparseCategoricalAccuracy", lower_bound=0.9, upper_bound=0.95))
    assert [validates(bounded, 1.0, v) for v in (0.8999, 0.9, 0.95, 0.9501)] == [False, True, True, False]


def test_a_threshold_for_one_slice_does_not_hold_in_others() -> None:
    conf = config(
        Threshold(metric="SparseCategoricalAccuracy", lower_bound=0.9, slices=(Slice(feature_keys=("digit",)),)),
        slices=(Slice(feature_keys=("city",)),),
    )
    thresholds = eval_config(conf).metrics_specs[1].metrics[0].per_slice_thresholds
    assert [list(t.slicing_specs) for t in thresholds] == [[config_pb2.SlicingSpec(feature_keys=["digit"])]]


@pytest.mark.parametrize("reverse", [False, True])
def test_two_metrics_that_tfma_gives_one_name_are_refused_in_either_order(reverse: bool) -> None:
    top = Threshold(metric="SparseTopKCategoricalAccuracy", config={"name": "sparse_categorical_accuracy", "k": 10}, max_drop=0.01)
    thresholds = (top, ACCURACY) if reverse else (ACCURACY, top)
    with pytest.raises(EdgeError, match=r"its name 'sparse_categorical_accuracy' is that of metric .*; give it another config\['name'\]"):
        component(config=config(*thresholds))


def test_a_metric_under_the_name_of_the_example_count_is_refused() -> None:
    counted = Threshold(metric="SparseCategoricalAccuracy", config={"name": "example_count"}, max_drop=0.01)
    with pytest.raises(EdgeError, match="its name 'example_count' is that of the number of examples"):
        component(config=config(counted))


@pytest.mark.parametrize(("metric", "direction"), [("AUC", "HIGHER_IS_BETTER"), ("SparseCategoricalCrossentropy", "LOWER_IS_BETTER")])
def test_the_better_side_of_a_metric_is_told_by_its_name(metric: str, direction: str) -> None:
    spec = eval_config(config(Threshold(metric=metric, max_drop=0.01))).metrics_specs[1]
    change = spec.metrics[0].per_slice_thresholds[0].threshold.change_threshold
    assert change.direction == config_pb2.MetricDirection.Value(direction)

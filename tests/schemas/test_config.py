"""A config's errors can be read to a colleague on the phone: one line, the field, the value, what was expected, the fix."""

import pytest
from pydantic import Field

from tfx_edge.schemas import (
    Budget,
    CalibrationConfig,
    Config,
    ConfigError,
    EdgeError,
    FineTuningConfig,
    GateConfig,
    PolynomialDecay,
    PruningConfig,
    QuantizationConfig,
    Slice,
    TensorRange,
    Threshold,
)

FINE_TUNING = FineTuningConfig(label_key="label")


class Oven(Config):
    degrees: int = Field(ge=0, le=300, description="Temperature, in degrees Celsius.")
    tray: int = 1


MISTAKES = {
    "a value above its bound": (
        lambda: Oven(degrees=301),
        "Oven.degrees: got 301; input should be less than or equal to 300 (Temperature, in degrees Celsius.)",
    ),
    "a missing field": (lambda: Oven(), "Oven.degrees: missing; give it a value (Temperature, in degrees Celsius.)"),
    "an unknown field": (lambda: Oven(degrees=1, tary=2), "Oven.tary: unknown field; Oven has degrees, tray"),
    "two mistakes": (lambda: Oven(degrees=-1, tray="x"), "Oven.degrees: got -1; "),
    "a field of a nested config": (
        lambda: PruningConfig(fine_tuning={"label_key": "label", "epochs": 0}),
        "FineTuningConfig.epochs: got 0; input should be greater than or equal to 1",
    ),
    "a sparsity of one": (lambda: PruningConfig(target_sparsity=1.0, fine_tuning=FINE_TUNING), "PruningConfig.target_sparsity: got 1.0; "),
    "a negative sparsity": (
        lambda: PruningConfig(target_sparsity=-0.1, fine_tuning=FINE_TUNING),
        "PruningConfig.target_sparsity: got -0.1; ",
    ),
    "a schedule that starts above its target": (
        lambda: PruningConfig(target_sparsity=0.3, schedule=PolynomialDecay(initial_sparsity=0.5), fine_tuning=FINE_TUNING),
        "PruningConfig: schedule.initial_sparsity 0.5 must be at most target_sparsity 0.3",
    ),
    "a schedule that ends before it begins": (
        lambda: PolynomialDecay(begin=0.7, end=0.5),
        "PolynomialDecay: begin 0.7 must be less than end 0.5",
    ),
    "an unknown schedule": (
        lambda: PruningConfig(schedule={"kind": "linear"}, fine_tuning=FINE_TUNING),
        "PruningConfig.schedule: got {'kind': 'linear'}; ",
    ),
    "no layers": (lambda: PruningConfig(layers=(), fine_tuning=FINE_TUNING), "PruningConfig.layers: got (); "),
    "strata without a feature": (
        lambda: CalibrationConfig(strategy="stratified"),
        "CalibrationConfig: strategy 'stratified' with stratify_by None; ",
    ),
    "a feature without strata": (
        lambda: CalibrationConfig(stratify_by="label"),
        "CalibrationConfig: strategy 'uniform' with stratify_by 'label'; ",
    ),
    "a sampled split that is held out": (
        lambda: CalibrationConfig(held_out=("eval", "train")),
        "CalibrationConfig: held_out ['eval', 'train'] has the split to sample from, 'train'; ",
    ),
    "int8 inputs of a float model": (
        lambda: QuantizationConfig(scheme="float16", io_type="int8"),
        "QuantizationConfig: io_type 'int8' with scheme 'float16'; ",
    ),
    "a scheme that isn't there": (lambda: QuantizationConfig(scheme="int2"), "QuantizationConfig.scheme: got 'int2'; "),
    "no thresholds": (lambda: GateConfig(label_key="label", thresholds=()), "GateConfig.thresholds: got (); "),
    "a threshold without a bound": (lambda: Threshold(metric="AUC"), "Threshold: metric 'AUC' has no bound; give max_drop, "),
    "a threshold of NaN": (lambda: Threshold(metric="AUC", max_drop=float("nan")), "Threshold.max_drop: got nan; "),
    "a threshold of True": (lambda: Threshold(metric="AUC", max_drop=True), "Threshold.max_drop: got True; input should be a number"),
    "a number as text": (lambda: CalibrationConfig(num_examples="3"), "CalibrationConfig.num_examples: got '3'; input should be a number"),
    "an accuracy that may drop by points": (
        lambda: Threshold(metric="SparseCategoricalAccuracy", max_drop=5),
        "Threshold: metric 'SparseCategoricalAccuracy' with max_drop 5.0, which forbids nothing; 0.01 is one percentage point",
    ),
    "a metric whose better side its name doesn't tell": (
        lambda: Threshold(metric="MyMetric", max_drop=0.1),
        "Threshold: metric 'MyMetric' with max_drop 0.1; give higher_is_better",
    ),
    "a metric that looks at no prediction": (
        lambda: Threshold(metric="ExampleCount", lower_bound=1),
        "Threshold: metric 'ExampleCount' is the same whatever a model predicts",
    ),
    "bounds without a value between": (
        lambda: Threshold(metric="AUC", lower_bound=0.9, upper_bound=0.1),
        "Threshold: lower_bound 0.9 is above upper_bound 0.1",
    ),
    "NaN in a metric's own config": (
        lambda: Threshold(metric="AUC", config={"num_thresholds": float("nan")}, max_drop=0.1),
        "Threshold: metric 'AUC': config ",
    ),
    "a range that goes down": (lambda: TensorRange(min=2, max=1), "TensorRange: min 2.0 is above max 1.0"),
    "a slice by a feature without a name": (lambda: Slice(feature_keys=("",)), "Slice: a feature named ''; "),
    "a slice of nothing": (lambda: Slice(), "Slice: names no feature; give feature_keys or feature_values"),
    "a budget of no bytes": (lambda: Budget(max_bytes=0), "Budget.max_bytes: got 0; "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_that_names_the_field_and_the_value(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    with pytest.raises(ConfigError) as caught:
        make()
    assert str(caught.value).startswith(text)
    assert len(str(caught.value).splitlines()) == 1
    assert isinstance(caught.value, EdgeError)
    assert caught.value.__cause__ is None


def test_two_mistakes_are_both_told() -> None:
    with pytest.raises(ConfigError, match=r"Oven\.degrees: got -1; .*; Oven\.tray: got 'x'; "):
        Oven(degrees=-1, tray="x")


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        Oven(degrees="9" * 10_000 + "x")
    assert len(str(caught.value)) < 500


def test_a_value_with_line_breaks_stays_on_one_line() -> None:
    with pytest.raises(ConfigError) as caught:
        Oven(degrees="one\ntwo")
    assert len(str(caught.value).splitlines()) == 1


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises((ConfigError, ValueError), match="frozen"):
        Oven(degrees=1).degrees = 2


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"degrees": "warm"}', b"\xff"])
def test_text_that_is_no_config_is_refused_by_name(text: str | bytes) -> None:
    with pytest.raises(ConfigError, match="Oven") as caught:
        Oven.from_json(text)
    assert len(str(caught.value).splitlines()) == 1

"""The search config: which fields it can reach, and what it refuses before anything runs."""

import pytest

from tfx_edge.schemas import (
    Between,
    ClusteringConfig,
    ConfigError,
    DistillationConfig,
    FineTuningConfig,
    LowRankConfig,
    MacBudget,
    OneOf,
    PruningConfig,
    QatConfig,
    QuantizationConfig,
    SearchConfig,
    Slice,
    Techniques,
    Threshold,
)
from tfx_edge.schemas.search import with_values

TUNING = FineTuningConfig(label_key="label")
ALL = Techniques(
    distillation=DistillationConfig(fine_tuning=TUNING),
    low_rank=LowRankConfig(fine_tuning=TUNING),
    pruning=PruningConfig(fine_tuning=TUNING, layer_sparsity={"conv.1*": 0.2}),
    clustering=ClusteringConfig(fine_tuning=TUNING, clusters={"conv*": 32, "*": 8}),
    quantization=QuantizationConfig(qat=QatConfig(fine_tuning=TUNING)),
)
ACCURACY = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01)


def config(**changes):
    given = {"techniques": ALL, "space": {"low_rank.rank.energy": Between(low=0.5, high=0.9)}, "label_key": "label", "threshold": ACCURACY}
    return SearchConfig(**{**given, **changes})


def test_every_technique_can_be_reached_and_nothing_else_changes():
    values = {
        "distillation.student.width": 0.25,
        "low_rank.rank.energy": 0.7,
        "pruning.target_sparsity": 0.8,
        "pruning.layer_sparsity.conv.1*": 0.3,
        "clustering.clusters.*": 4,
        "quantization.qat.fine_tuning.learning_rate": 1e-5,
        "quantization.io_type": "int8",
    }
    changed = with_values(ALL, values)
    assert changed.distillation.student.width == 0.25
    assert changed.low_rank.rank.energy == 0.7
    assert (changed.pruning.target_sparsity, changed.pruning.layer_sparsity) == (0.8, {"conv.1*": 0.3})
    assert changed.clustering.clusters == {"conv*": 32, "*": 4}
    assert list(changed.clustering.clusters) == ["conv*", "*"]  # the first that matches decides
    assert changed.quantization.qat.fine_tuning.learning_rate == 1e-5
    back = {
        "distillation.student.width": 0.5,
        "low_rank.rank.energy": 0.9,
        "pruning.target_sparsity": 0.5,
        "pruning.layer_sparsity.conv.1*": 0.2,
        "clustering.clusters.*": 8,
        "quantization.qat.fine_tuning.learning_rate": 1e-3,
        "quantization.io_type": "float32",
    }
    assert with_values(changed, back) == ALL


@pytest.mark.parametrize("step", ["distillation", "low_rank", "pruning", "clustering", "quantization.qat"])
def test_a_step_can_be_left_out_and_no_other_goes(step):
    left = with_values(ALL, {step: False})
    steps = {name: getattr(left, name) for name in ("distillation", "low_rank", "pruning", "clustering")}
    steps["quantization.qat"] = left.quantization.qat
    assert [name for name, value in steps.items() if value is None] == [step]
    assert with_values(ALL, {step: True}) == ALL


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"space": {}}, "space and optional are empty"),
        ({"space": {"pruning.sparsity": OneOf(values=(0.5,))}}, "pruning has no field 'sparsity'; it has target_sparsity, "),
        ({"space": {"prune.target_sparsity": OneOf(values=(0.5,))}}, "techniques has no field 'prune'; it has distillation, "),
        ({"techniques": Techniques(), "space": {"pruning.target_sparsity": OneOf(values=(0.5,))}}, "pruning isn't among the techniques"),
        ({"space": {"pruning.target_sparsity": Between(low=0.5, high=1.5)}}, r"space 'pruning.target_sparsity': PruningConfig.*got 1.5"),
        ({"space": {"clustering.clusters.*": OneOf(values=(2, 8))}}, r"space 'clustering.clusters.\*'.*2 is too few"),
        ({"space": {"clustering.clusters.*": Between(low=4, high=8.5)}}, "valid integer"),
        ({"space": {"clustering.clusters.dense*": OneOf(values=(8,))}}, r"clusters has no field 'dense\*'; it has conv\*, \*"),
        ({"space": {"quantization.scheme": OneOf(values=("int8", "float16"))}}, "qat with scheme 'float16'"),
        ({"optional": ("calibration",)}, "'calibration' is no step that can be left out; those there are distillation, low_rank"),
        ({"threshold": Threshold(metric="AUC", max_drop=0.1, lower_bound=0.9)}, "threshold.lower_bound: a search"),
        ({"threshold": ACCURACY.model_copy(update={"slices": (Slice(feature_keys=("a",)),)})}, "threshold.slices: a search"),
        ({"threshold": Threshold(metric="AUC", lower_bound=0.9)}, "threshold without max_drop"),
        (
            {"techniques": ALL.model_copy(update={"low_rank": LowRankConfig(rank=MacBudget(), fine_tuning=TUNING)})},
            "rank has no field 'energy'; it has kind, share",
        ),
        (
            {"techniques": with_values(ALL, {"clustering.fine_tuning.checkpoint_dir": "/c"})},
            r"techniques.clustering.fine_tuning.checkpoint_dir '/c' would be shared",
        ),
    ],
)
def test_what_no_trial_could_do_is_refused_by_its_path(changes, text):
    with pytest.raises(ConfigError, match=text) as caught:
        config(**changes)
    assert "\n" not in str(caught.value)


def test_a_scheme_that_only_fits_without_an_optional_step_is_taken():
    space = {"quantization.scheme": OneOf(values=("int8", "float16"))}
    assert config(space=space, optional=("quantization.qat",)).space == space


@pytest.mark.parametrize(
    ("techniques", "changes", "needed"),
    [
        (Techniques(), {"space": {"quantization.io_type": OneOf(values=("float32", "int8"))}}, True),
        (Techniques(), {"space": {"quantization.scheme": OneOf(values=("float16", "int8"))}}, True),
        (Techniques(), {"space": {"quantization.scheme": OneOf(values=("float16", "dynamic_range"))}}, False),
        (ALL, {}, False),
        (ALL, {"optional": ("quantization.qat",)}, True),
    ],
)
def test_calibration_data_may_be_needed_where_a_trial_may_quantize_to_int8_after_training(techniques, changes, needed):
    assert config(techniques=techniques, **changes).may_calibrate is needed


@pytest.mark.parametrize(
    ("values", "text"),
    [((8, 8), "name one twice"), ((), "at least 1"), ((True, False), "valid integer"), ((0.5, "a"), "valid")],
)
def test_choices_are_of_one_type_and_each_named_once(values, text):
    with pytest.raises(ConfigError, match=text):
        OneOf(values=values)


def test_choices_keep_their_types_through_json():
    for values in ((4, 8), (0.5, 1.0), ("int8", "float16")):
        read = OneOf.from_json(OneOf(values=values).to_json()).values
        assert read == values and [type(v) for v in read] == [type(v) for v in values]


@pytest.mark.parametrize(("low", "high", "log", "text"), [(0.5, 0.5, False, "less than high"), (0.0, 1.0, True, "more than 0 with log")])
def test_a_range_has_two_ends_and_a_logarithm(low, high, log, text):
    with pytest.raises(ConfigError, match=text):
        Between(low=low, high=high, log=log)

"""The search for the smallest model that keeps its accuracy, on models that int8 ruins in known places."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from chain_models import Chain, benign, chain, narrow_head, outlier

from tfx_edge.litert.inspect import quantized_tensors
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Evaluator, Maker, Measured, SearchResult, search
from tfx_edge.litert.search.remedies import REMEDIES
from tfx_edge.schemas import AccuracyTarget, ConfigError, EdgeError, QuantizationConfig, Threshold
from tfx_edge.schemas.accuracy import SearchTrial

INT8 = QuantizationConfig(scheme="int8")
MIXED_ONLY: Mapping[str, Any] = {"escalation": ("mixed",)}


def target(max_drop: float = 0.2, **fields: Any) -> AccuracyTarget:
    return AccuracyTarget(threshold=Threshold(metric="MeanAbsoluteError", max_drop=max_drop), label_key="y", split="validation", **fields)


def evaluator(model: Chain) -> Evaluator:
    [output] = Runner(model.flatbuffer).signature.output_names
    return Evaluator(model.flatbuffer, model.features, output, model.error)


def quantizer(model: Chain) -> Maker:
    return Maker(model.flatbuffer, RangeCollector(model.flatbuffer)(model.features))


def run(model: Chain, target: AccuracyTarget, config: QuantizationConfig = INT8) -> SearchResult:
    return search(model.flatbuffer, config, target, quantizer(model), evaluator(model))


def layers(*names: str) -> set[str]:
    return {f"{name}_tensor" for name in names}


def winner(result: SearchResult) -> SearchTrial:
    [trial] = [t for t in result.trials if t.metric == result.metric and t.feasible and t.step != "sensitivity"]
    return trial


@pytest.fixture(scope="module")
def one_outlier() -> Chain:
    return chain([benign("a", 1), benign("b", 2), *outlier(("up", "down"), 3), benign("e", 5), benign("f", 6)])


@pytest.fixture(scope="module")
def broken_twice() -> Chain:
    """In two places that hide each other: leaving either in float recovers nothing."""
    return chain([benign("a", 1), *outlier(("up", "down"), 3), benign("e", 5), narrow_head("head", 6)])


def test_a_config_that_keeps_its_accuracy_is_taken_as_asked() -> None:
    result = run(chain([benign("a", 1), benign("b", 2)]), target())
    assert result.met and result.config == INT8
    [trial] = result.trials
    assert trial.step == "as_asked" and trial.feasible and trial.operators == ()


def test_the_operators_that_int8_ruins_are_found_and_no_others(one_outlier: Chain) -> None:
    result = run(one_outlier, target(**MIXED_ONLY))
    assert result.met and set(winner(result).operators) == layers("up", "down")


def test_operators_in_two_places_that_hide_each_other_are_found(broken_twice: Chain) -> None:
    result = run(broken_twice, target(**MIXED_ONLY))
    assert result.met and set(winner(result).operators) == layers("up", "down", "head")


def test_the_model_of_the_result_meets_the_target_and_has_the_size_that_the_table_says(broken_twice: Chain) -> None:
    result = run(broken_twice, target(0.1, **MIXED_ONLY))
    flatbuffer = quantizer(broken_twice)(result.config)
    predictions = next(iter(Runner(flatbuffer)(broken_twice.features).values()))
    float_predictions = next(iter(Runner(broken_twice.flatbuffer)(broken_twice.features).values()))
    assert broken_twice.error(predictions) - broken_twice.error(float_predictions) <= 0.1
    assert result.metric == broken_twice.error(predictions)
    assert winner(result).size_bytes == len(flatbuffer)


def test_no_single_operator_of_the_result_can_be_put_back(broken_twice: Chain) -> None:
    """The rules of the result are one an operator: without any of them the model loses too much, or is larger."""
    limit = target(**MIXED_ONLY)
    result = run(broken_twice, limit)
    quantize, evaluate = quantizer(broken_twice), evaluator(broken_twice)
    assert len(result.config.rules) == 3
    for rule in result.config.rules:
        fewer = result.config.model_copy(update={"rules": tuple(r for r in result.config.rules if r != rule)})
        assert not limit.keeps(result.float_metric, evaluate(quantize(fewer)).metric)


def test_a_ranking_that_is_wrong_costs_candidates_and_no_bytes(broken_twice: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfx_edge.litert.search import ladder

    right = run(broken_twice, target(**MIXED_ONLY))
    monkeypatch.setattr(ladder, "rank", lambda trials, base, operators: list(operators))  # as they run: the worst comes last
    wrong = run(broken_twice, target(**MIXED_ONLY))
    assert set(winner(wrong).operators) == set(winner(right).operators)
    good = [t for t in wrong.trials if t.feasible and t.step != "sensitivity"]
    assert len(good) > 1 and winner(wrong).gzip_bytes == min(t.gzip_bytes or 0 for t in good)


def test_the_same_search_gives_the_same_trials_and_bytes(broken_twice: Chain) -> None:
    first, second = run(broken_twice, target()), run(broken_twice, target())
    assert first == second
    quantize = quantizer(broken_twice)
    assert quantize(first.config) == quantize(second.config)


def test_no_candidate_is_made_twice(broken_twice: Chain) -> None:
    made: list[str] = []
    quantize = quantizer(broken_twice)

    def counting(config: QuantizationConfig) -> bytes:
        made.append(config.to_json())
        return quantize(config)

    result = search(broken_twice.flatbuffer, INT8, target(**MIXED_ONLY), counting, evaluator(broken_twice))
    again = [config for config in set(made) if made.count(config) > 1]
    assert again in ([], [INT8.to_json()])  # the base once more, to see which operators it quantizes
    assert len(result.trials) == len(set(made))


@pytest.mark.parametrize("fallback", ["float32", "float16", "int8_weights", "int16x8"])
def test_operators_at_higher_precision_get_the_fallback(one_outlier: Chain, fallback: Any) -> None:
    result = run(one_outlier, target(fallback=fallback, **MIXED_ONLY))
    assert result.met and {rule.scheme for rule in result.config.rules} == {fallback}
    assert set(winner(result).operators) == layers("up", "down")


def test_16_bit_activations_for_the_whole_model_come_last(one_outlier: Chain) -> None:
    result = run(one_outlier, target(escalation=("int16x8",)))
    assert result.met and result.config.scheme == "int16x8" and result.config.rules == ()
    before = run(one_outlier, target(escalation=("mixed", "int16x8")))
    assert before.met and before.config.scheme == "int8" and all(t.scheme == "int8" for t in before.trials)


def test_int8_inputs_and_outputs_stay_when_the_operators_behind_them_are_float() -> None:
    model = chain([*outlier(("up", "down"), 3), benign("e", 5)])
    result = run(model, target(**MIXED_ONLY), QuantizationConfig(scheme="int8", io_type="int8"))
    assert result.met and set(winner(result).operators) == layers("up", "down")
    signature = Runner(quantizer(model)(result.config)).signature
    assert {t.dtype for t in (*signature.inputs, *signature.outputs)} == {"int8"}


def test_an_output_that_int8_cannot_hold_is_the_reason_why_nothing_meets_the_target() -> None:
    model = chain([benign("a", 1), narrow_head("head", 6)])
    result = run(model, target(), QuantizationConfig(scheme="int8", io_type="int8"))
    assert not result.met
    assert re.search("with all 2 operators at 'float32' it still loses 0[.][789]", result.reason)
    assert "set io_type 'float32'" in result.reason and "MeanAbsoluteError" in result.reason
    assert run(model, target(), INT8).met  # as the reason says


def test_the_most_sensitive_operator_is_named_where_16_bits_are_too_few() -> None:
    name, kernel, bias = narrow_head("head", 6)
    model = chain([benign("a", 1), (name, kernel, bias * 1_000)])
    result = run(model, target(fallback="int16x8", escalation=("mixed", "int16x8")))
    assert not result.met
    assert "'head_tensor', costs " in result.reason and "set fallback 'float32'" in result.reason


def test_what_is_found_where_nothing_meets_the_target_is_the_nearest(one_outlier: Chain) -> None:
    result = run(one_outlier, target(1e-6, escalation=("mixed", "int16x8"), fallback="int16x8"))
    assert not result.met
    drops = [t.drop for t in result.trials if t.step != "sensitivity" and t.drop is not None]
    assert len(drops) > 4
    assert result.metric is not None and result.metric - result.float_metric == pytest.approx(min(drops))


def test_the_search_stops_at_max_candidates_with_what_it_has(one_outlier: Chain) -> None:
    result = run(one_outlier, target(max_candidates=4, **MIXED_ONLY))
    assert len(result.trials) == 4 and not result.met and "max_candidates 4" in result.reason
    enough = run(one_outlier, target(max_candidates=9, **MIXED_ONLY))
    assert enough.met and len(enough.trials) == 9 and "max_candidates" in enough.reason  # nothing was put back yet


def test_a_candidate_that_the_quantizer_refuses_is_a_trial_with_its_reason(one_outlier: Chain) -> None:
    quantize = quantizer(one_outlier)

    def refusing(config: QuantizationConfig) -> bytes:
        if any("up_tensor" in rule.tensor and rule.scheme == "float32" and "?!" not in rule.tensor for rule in config.rules):
            raise EdgeError("up_tensor can't be float")
        return quantize(config)

    result = search(one_outlier.flatbuffer, INT8, target(**MIXED_ONLY), refusing, evaluator(one_outlier))
    refused = [t for t in result.trials if t.error]
    assert refused and all(t.error == "up_tensor can't be float" and not t.feasible and t.metric is None for t in refused)
    assert all("up_tensor" in t.operators for t in refused)
    assert not result.met and "up_tensor can't be float" in result.reason


def test_an_operator_for_which_the_whole_model_is_refused_is_left_in_float() -> None:
    model = chain([benign("a", 1), benign("b", 2), benign("c", 3)])
    quantize = quantizer(model)

    def refusing(config: QuantizationConfig) -> bytes:
        flatbuffer = quantize(config)
        if "b_w_tensor" in quantized_tensors(flatbuffer):
            raise EdgeError("b has no int8 form")
        return flatbuffer

    result = search(model.flatbuffer, INT8, target(**MIXED_ONLY), refusing, evaluator(model))
    assert result.trials[0].error == "b has no int8 form"
    assert result.met and set(winner(result).operators) == layers("b")


def test_where_every_candidate_is_refused_the_reason_is_the_first_ones(one_outlier: Chain) -> None:
    def refusing(config: QuantizationConfig) -> bytes:
        raise EdgeError(f"no {config.scheme} here")

    result = search(one_outlier.flatbuffer, INT8, target(), refusing, evaluator(one_outlier))
    assert not result.met and result.metric is None and "no int8 here" in result.reason and result.config == INT8
    assert not any(t.step == "mixed" for t in result.trials)  # where no operator alone can be quantized, no set can


def with_stand_ins(one_outlier: Chain, *escalation: str) -> SearchResult:
    """A search in which `mse` stands for a remedy that ruins the model and `entropy` for one that mends it halfway."""
    evaluate, quantize = evaluator(one_outlier), quantizer(one_outlier)
    worth = {64: 0.5, 65: -0.1, 66: -0.2}  # batch_size marks the config, which else changes nothing

    def marked(size: int) -> Any:
        return lambda config: QuantizationConfig.model_validate({**dict(config), "batch_size": size})

    def measure(flatbuffer: bytes) -> Measured:
        measured = evaluate(flatbuffer)
        return replace(measured, metric=measured.metric + worth.get(flatbuffer[-1], 0.0))

    def marking(config: QuantizationConfig) -> bytes:
        return quantize(config) + bytes([config.batch_size])

    return search(
        one_outlier.flatbuffer,
        INT8,
        target(escalation=escalation),
        marking,
        lambda flatbuffer: measure(flatbuffer) if flatbuffer != one_outlier.flatbuffer else evaluate(flatbuffer),
        {"mse": marked(64), "entropy": marked(65), "percentile": marked(66)},
    )


def test_a_remedy_is_kept_where_it_helps_and_dropped_where_it_does_not(one_outlier: Chain) -> None:
    """What comes behind it builds on it."""
    result = with_stand_ins(one_outlier, "mse", "entropy", "mixed")
    assert [(t.step, t.remedies) for t in result.trials[:3]] == [("as_asked", ()), ("mse", ("mse",)), ("entropy", ("entropy",))]
    assert result.config.batch_size == 65
    assert {t.remedies for t in result.trials if t.step == "mixed"} == {("entropy", "mixed")}


def test_of_range_methods_one_is_in_force(one_outlier: Chain) -> None:
    result = with_stand_ins(one_outlier, "entropy", "percentile", "mixed")
    assert [t.remedies for t in result.trials[1:3]] == [("entropy",), ("percentile",)]


def test_operators_are_left_in_float_with_the_constants_of_the_float_model(one_outlier: Chain) -> None:
    """What a correction fits to int8 is wrong for them: here `ada_round` mends int8 halfway and ruins all that is float."""
    quantize, evaluate = quantizer(one_outlier), evaluator(one_outlier)

    def marking(config: QuantizationConfig) -> bytes:
        return quantize(config) + bytes([any(c.kind == "ada_round" for c in config.corrections), len(config.rules)])

    def measure(flatbuffer: bytes) -> Measured:
        measured = evaluate(flatbuffer)
        if flatbuffer == one_outlier.flatbuffer or not flatbuffer[-2]:
            return measured
        return replace(measured, metric=measured.metric + (1 if flatbuffer[-1] else -0.1))

    result = search(one_outlier.flatbuffer, INT8, target(escalation=("ada_round", "mixed")), marking, measure)
    assert result.trials[1].drop == pytest.approx((result.trials[0].drop or 0) - 0.1)
    assert result.met and result.config.corrections == () and winner(result).remedies == ("mixed",)


def test_16_bit_activations_start_from_the_config_as_asked(one_outlier: Chain) -> None:
    result = with_stand_ins(one_outlier, "entropy", "int16x8")
    assert [(t.step, t.remedies) for t in result.trials[1:]] == [("entropy", ("entropy",)), ("int16x8", ("int16x8",))]
    assert result.met and result.config == INT8.model_copy(update={"scheme": "int16x8"})


def test_a_remedy_that_changes_nothing_is_no_trial(one_outlier: Chain) -> None:
    result = run(one_outlier, target(escalation=("channel_scales",)))
    assert [t.step for t in result.trials] == ["as_asked"] and not result.met
    assert "'mixed'" in result.reason


def test_a_step_that_the_config_does_not_allow_is_a_refused_trial(one_outlier: Chain) -> None:
    result = run(one_outlier, target(escalation=("int16x8",)), QuantizationConfig(scheme="int8", io_type="int8"))
    refused = result.trials[-1]
    assert refused.step == "int16x8" and "io_type 'int8' with scheme 'int16x8'" in refused.error


def test_every_remedy_of_the_default_escalation_is_known() -> None:
    assert set(AccuracyTarget.model_fields["escalation"].default) == {*REMEDIES, "mixed", "int16x8", "dynamic_range"}


def test_a_scale_a_channel_is_enough_where_channels_differ() -> None:
    """With one scale for all weights those of the small channels are rounded away."""
    name, kernel, bias = benign("a", 1)
    model = chain([(name, kernel * ([0.01] * 11 + [1.0]), bias)])
    result = run(model, target(0.002), QuantizationConfig(scheme="int8_weights", granularity="tensor"))
    assert [t.step for t in result.trials] == ["as_asked", "channel_scales"] and not result.trials[0].feasible
    assert result.met and result.config == QuantizationConfig(scheme="int8_weights", granularity="channel")


def test_a_target_beside_training_or_without_anything_to_lose_is_refused() -> None:
    with pytest.raises(ConfigError, match="names 'mixed' twice"):
        target(escalation=("mixed", "mixed"))
    with pytest.raises(ConfigError, match="scheme 'float32'"):
        QuantizationConfig(scheme="float32", accuracy_target=target())

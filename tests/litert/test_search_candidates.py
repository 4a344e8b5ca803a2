"""Candidates of a search: rules that name one operator, and many configs of one model."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.collector import Collector
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.planning import carry_out, plan_quantization
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Maker, PreparingMaker
from tfx_edge.litert.search.operators import Operator, quantized_operators
from tfx_edge.litert.search.remedies import REMEDIES
from tfx_edge.schemas import EdgeError, QuantizationConfig, SchemeRule, TensorRange, TensorRanges
from tfx_edge.schemas.corrections import ORDER, AdaRound
from tfx_edge.schemas.ranges import RangeConfig, RangeRule

INT8 = QuantizationConfig(scheme="int8")


def changed(config: QuantizationConfig, *rules: SchemeRule) -> QuantizationConfig:
    return config.model_copy(update={"rules": rules})


@pytest.fixture(scope="module")
def awkward() -> bytes:
    """Names that contain each other, as a converter's do, with characters of regular expressions, and an operator of two outputs."""
    x = Tensor("x", "float32", (None, 6))
    a, b, c = (Tensor(name, "float32", (None, 6)) for name in ("dense", "dense_tensor;Add(1)", "Add(1)"))  # a name gets _tensor behind it
    halves = Tensor("split", "float32", (None, 3)), Tensor("split:1", "float32", (None, 3))
    y = Tensor("y", "float32", (None, 3))
    split, add = schema.SplitOptionsT(), schema.AddOptionsT()
    split.numSplits = 2
    axis = Tensor("axis", "int32", (), value=np.array(1))
    ops = (
        _dense(x, a, 1),
        _dense(a, b, 2),
        _dense(b, c, 3),
        Op("SPLIT", (axis, c), halves, split),
        Op("ADD", halves, (y,), add),
    )
    return pack([Graph("serving_default", (x,), (y,), ops)])


def _dense(x: Tensor, y: Tensor, seed: int) -> Op:
    generator = np.random.default_rng(seed)
    kernel = Tensor(f"{y.name}/w", "float32", (6, 6), value=generator.normal(size=(6, 6)))
    bias = Tensor(f"{y.name}/b", "float32", (6,), value=generator.normal(size=6))
    return Op("FULLY_CONNECTED", (x, kernel, bias), (y,), schema.FullyConnectedOptionsT())


def features(n: int = 50) -> dict[str, Any]:
    return {"x": np.random.default_rng(3).normal(size=(n, 6)).astype(np.float32)}


def float_outputs(model: bytes) -> set[str]:
    """First outputs of the operators that compute in float."""
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[0]
    kinds = [inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) for op in graph.operators]
    return {
        graph.tensors[op.outputs[0]].name.decode()
        for kind, op in zip(kinds, graph.operators, strict=True)
        if kind not in ("QUANTIZE", "DEQUANTIZE") and graph.tensors[op.outputs[0]].type == schema.TensorType.FLOAT32
    }


def operators(model: bytes, make: Maker) -> tuple[Operator, ...]:
    return quantized_operators(model, make(INT8))


def test_a_rule_names_its_operator_and_no_other(awkward: bytes) -> None:
    make = Maker(awkward, RangeCollector(awkward)(features()))
    every = operators(awkward, make)
    assert [op.kind for op in every] == [*["FULLY_CONNECTED"] * 3, "SPLIT", "ADD"]
    for op in every:
        rule = op.at("float32")
        assert [other for other in every if rule.names(other.kind, other.tensor)] == [op]
        assert float_outputs(make(changed(INT8, rule))) == {op.tensor}


def test_the_rule_for_an_operator_alone_leaves_all_others_in_float(awkward: bytes) -> None:
    make = Maker(awkward, RangeCollector(awkward)(features()))
    every = operators(awkward, make)
    for op in every:
        assert float_outputs(make(changed(INT8, op.alone()))) == {other.tensor for other in every} - {op.tensor}


def test_operators_come_with_the_bytes_of_their_weights(awkward: bytes) -> None:
    make = Maker(awkward, RangeCollector(awkward)(features()))
    assert [op.weight_bytes for op in operators(awkward, make)] == [*[(36 + 6) * 4] * 3, 4, 0]


def test_an_operator_that_the_quantizer_leaves_as_it_is_does_not_count(awkward: bytes) -> None:
    make = Maker(awkward, RangeCollector(awkward)(features()))
    weights_alone = make(QuantizationConfig(scheme="int8_weights"))
    assert {op.kind for op in quantized_operators(awkward, weights_alone)} == {"FULLY_CONNECTED"}
    assert quantized_operators(awkward, awkward) == ()
    left = operators(awkward, make)[1]
    assert left not in quantized_operators(awkward, make(changed(INT8, left.at("float32"))))


@pytest.mark.parametrize("scheme", ["float32", "float16", "dynamic_range", "int8", "int16x8", "int8_weights"])
def test_many_configs_of_one_model_give_what_a_plan_each_gives(image_model: bytes, images: dict[str, Any], scheme: Any) -> None:
    """In whatever order they are made."""
    ranges = RangeCollector(image_model)(images)
    make = Maker(image_model, ranges)
    first, *_ = operators(image_model, make)
    config = QuantizationConfig(scheme=scheme)
    for each in (config, INT8, changed(config, first.at("float32")), config):
        assert make(each) == apply_plan(image_model, make_plan(image_model, each, ranges), ranges)


def test_what_a_plan_refuses_is_refused(image_model: bytes) -> None:
    with pytest.raises(EdgeError, match="without calibrated ranges"):
        Maker(image_model)(INT8)
    other = TensorRanges(ranges={"other": TensorRange(min=0, max=1)}, examples=1)
    with pytest.raises(EdgeError, match="none for tensor"):
        Maker(image_model, other)(INT8)
    assert Runner(Maker(image_model)(QuantizationConfig(scheme="dynamic_range"))).signature


@pytest.mark.parametrize("method", ["percentile", "mse", "entropy"])
def test_a_remedy_takes_ranges_by_another_method_and_leaves_the_rest(method: Any) -> None:
    ranges = RangeConfig(percentile=99, rules=(RangeRule(tensor="logits", method="min_max"),))
    config = QuantizationConfig(scheme="int8", ranges=ranges)
    assert REMEDIES[method](config) == config.model_copy(update={"ranges": ranges.model_copy(update={"method": method})})
    uncalibrated = QuantizationConfig(scheme="dynamic_range")
    assert REMEDIES[method](uncalibrated) == uncalibrated


@pytest.mark.parametrize("kinds", itertools.permutations(ORDER))
def test_remedies_add_corrections_in_the_order_in_which_they_work(kinds: tuple[Any, ...]) -> None:
    config = QuantizationConfig(scheme="int8", corrections=(AdaRound(iterations=7),))
    for kind in kinds:
        config = REMEDIES[kind](config)
    assert tuple(correction.kind for correction in config.corrections) == ORDER
    assert AdaRound(iterations=7) in config.corrections


@dataclass(frozen=True)
class Model:
    float_model: bytes
    ranges: TensorRanges


def test_ranges_and_constants_are_made_once_for_all_configs_that_differ_in_rules_alone(awkward: bytes) -> None:
    wide = RangeCollector(awkward)(features())
    narrow = TensorRanges(ranges={n: TensorRange(min=r.min / 2, max=r.max / 2) for n, r in wide.ranges.items()}, examples=50)
    asked: list[QuantizationConfig] = []

    def prepare(config: QuantizationConfig) -> Model:
        asked.append(config)
        return Model(awkward, narrow if config.ranges.method == "mse" else wide)

    make = PreparingMaker(prepare)
    by_mse = REMEDIES["mse"](INT8)
    left = operators(awkward, Maker(awkward, wide))[0].at("float32")
    for config, ranges in ((INT8, wide), (by_mse, narrow), (changed(by_mse, left), narrow), (changed(INT8, left), wide)):
        assert make(config) == Maker(awkward, ranges)(config)
        assert make.prepared(config).ranges == ranges
    assert asked == [INT8, by_mse]


def test_a_rule_that_needs_ranges_gets_them_whatever_was_made_before(awkward: bytes) -> None:
    """Rules decide whether there are ranges: a candidate without any must not leave its lack of them to the next."""
    collector = Collector(awkward)
    collector.add(features())
    asked = QuantizationConfig(scheme="dynamic_range")
    mixed = changed(asked, SchemeRule(operator="FULLY_CONNECTED", scheme="int8"))
    make = Candidates(awkward, lambda model: collector.finish())
    assert make(asked) == Maker(awkward)(asked)
    assert make(mixed) == Maker(awkward, RangeCollector(awkward)(features()))(mixed)


def test_backend_auto_compares_on_the_calibration_examples_in_a_search_as_in_the_plan(awkward: bytes) -> None:
    """Whatever the search measured is what the plan makes."""
    collector, asked = Collector(awkward), QuantizationConfig(scheme="int8", backend="auto")
    collector.add(features())
    read: list[int] = []

    def examples() -> dict[str, Any]:
        read.append(1)
        return features()

    candidates = Candidates(awkward, lambda model: collector.finish(), examples)
    made = candidates(asked)
    assert read == [1]
    planned, _ = plan_quantization(candidates, asked, "digest")
    assert carry_out(awkward, planned) == made

"""Who carries a plan out, and what each can do that the other can't."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from recurrent_flatbuffers import FEATURES, STEPS, loop, lstm
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.backends import converter
from tfx_edge.litert.backends.litert import with_unique_names
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import ConfigError, EdgeError, QuantizationConfig, QuantizationPlan, SchemeRule, TensorRanges

RNG = np.random.default_rng(0)
SERIES = {"series": RNG.normal(size=(40, STEPS, FEATURES)).astype(np.float32)}
INTEGERS = QuantizationConfig(scheme="int8", io_type="int8", integer_only=True, backend="auto")

pytestmark = pytest.mark.usefixtures("nothing_on_stdout")


@pytest.fixture(scope="module")
def recurrent() -> tuple[bytes, TensorRanges]:
    model = lstm()
    return model, RangeCollector(model)(SERIES)


@pytest.fixture(scope="module")
def chosen(recurrent: tuple[bytes, TensorRanges]) -> QuantizationPlan:
    model, ranges = recurrent
    return make_plan(model, INTEGERS, ranges, "digest", SERIES)


def relative_error(got: NDArray[Any], expected: NDArray[Any]) -> float:
    return float(np.abs(got - expected).mean() / expected.std())


def test_auto_takes_the_backend_that_makes_an_lstm_integer_and_says_why(chosen: QuantizationPlan) -> None:
    assert (chosen.backend, chosen.recipe, chosen.float_ops) == ("converter", (), ())
    assert chosen.backend_reason is not None and "\n" not in chosen.backend_reason
    for part in ("converter: ", "litert ", " bytes gzipped with error "):
        assert part in chosen.backend_reason


def test_the_converter_makes_of_stored_ranges_an_integer_lstm_that_predicts_as_the_float_one(
    recurrent: tuple[bytes, TensorRanges], chosen: QuantizationPlan
) -> None:
    model, ranges = recurrent
    plan = QuantizationPlan.from_json(chosen.to_json())
    quantized = apply_plan(model, plan, ranges)
    assert inspect.operators(quantized) == inspect.operators(model)
    used = inspect.parse(quantized).subgraphs[0]
    read = {i for op in used.operators for i in (*op.inputs, *op.outputs) if i >= 0}
    assert schema.TensorType.FLOAT32 not in {used.tensors[i].type for i in read}
    assert relative_error(Runner(quantized)(SERIES)["y"], Runner(model)(SERIES)["y"]) < 0.03
    assert len(quantized) < 0.5 * len(model)
    assert apply_plan(model, plan, ranges) == quantized


def test_integer_only_names_what_litert_quantizer_leaves_in_float(recurrent: tuple[bytes, TensorRanges]) -> None:
    model, ranges = recurrent
    config = INTEGERS.model_copy(update={"backend": "litert"})
    with pytest.raises(EdgeError, match=r"integer_only, but UNIDIRECTIONAL_SEQUENCE_LSTM 'sequence_tensor' .* try backend 'converter'"):
        make_plan(model, config, ranges)
    lax = make_plan(model, config.model_copy(update={"integer_only": False}), ranges)
    assert [op.op for op in lax.float_ops] == ["UNIDIRECTIONAL_SEQUENCE_LSTM"]


def test_integer_only_names_an_operator_that_a_rule_leaves_in_float(dense: Any) -> None:
    ranges = RangeCollector(dense.flatbuffer)({"x": dense.x})
    strict = QuantizationConfig(scheme="int8", io_type="int8", integer_only=True)
    make_plan(dense.flatbuffer, strict, ranges)
    ruled = strict.model_copy(update={"rules": (SchemeRule(operator="FULLY_CONNECTED", scheme="float32"),)})
    with pytest.raises(EdgeError, match=r"integer_only, but FULLY_CONNECTED .* \(scheme 'float32' computes in float\) stays float"):
        make_plan(dense.flatbuffer, ruled, ranges)


def test_a_backend_that_fails_is_no_error_while_the_other_works(recurrent: tuple[bytes, TensorRanges]) -> None:
    model, _ = recurrent
    plan = make_plan(model, QuantizationConfig(scheme="dynamic_range", backend="auto"))
    assert plan.backend == "litert"
    assert plan.backend_reason is not None
    assert plan.backend_reason.startswith("litert: the only one that works")
    assert "converter failed: TFLiteConverter quantizes a flatbuffer by scheme 'int8' without rules" in plan.backend_reason


def test_the_errors_of_both_are_told_when_both_fail() -> None:
    model = loop(np.eye(4, dtype=np.float32), 3)
    ranges = RangeCollector(model)({"x": np.ones((2, 4), np.float32)})
    with pytest.raises(EdgeError, match=r"no backend .*litert failed: .*'dynamic_range'.*; converter failed: .*'dynamic_range'"):
        make_plan(model, QuantizationConfig(scheme="int8", backend="auto"), ranges)


def test_a_converter_that_takes_too_long_is_stopped(recurrent: tuple[bytes, TensorRanges]) -> None:
    model, ranges = recurrent
    with pytest.raises(EdgeError, match=r"didn't finish within 0\.2 s"):
        converter.quantize(model, INTEGERS, ranges, time_limit_s=0.2)


@pytest.mark.parametrize(
    "fields", [{"scheme": "dynamic_range"}, {"scheme": "int16x8"}, {"rules": (SchemeRule(operator="ADD", scheme="float32"),)}]
)
def test_a_config_that_the_converter_cannot_carry_out_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="backend 'converter' with (scheme|rules).*; it does scheme 'int8' without rules"):
        QuantizationConfig(**{"scheme": "int8", **fields, "backend": "converter"})


def test_integer_only_needs_integer_inputs_and_outputs() -> None:
    with pytest.raises(ConfigError, match="integer_only with io_type 'float32'"):
        QuantizationConfig(scheme="int8", integer_only=True)


def test_the_weights_inside_a_loop_are_quantized_though_its_graphs_share_names() -> None:
    kernel = RNG.normal(scale=0.2, size=(24, 24)).astype(np.float32)
    model = loop(kernel, 3)
    x = {"x": RNG.normal(size=(20, 24)).astype(np.float32)}
    plan = make_plan(model, QuantizationConfig(scheme="dynamic_range"))
    quantized = apply_plan(model, plan)
    assert relative_error(Runner(quantized)(x)["y"], x["x"] @ kernel @ kernel @ kernel) < 0.05
    assert len(quantized) < len(model) - 24 * 24 * 2
    assert "FULLY_CONNECTED" not in {op.op for op in plan.float_ops}


def test_names_become_unique_and_the_first_of_each_stays() -> None:
    model = loop(np.eye(4, dtype=np.float32), 3)
    before, after = ([[t.name for t in g.tensors] for g in inspect.parse(m).subgraphs] for m in (model, with_unique_names(model)))
    assert before[:2] == after[:2]
    flat = [name for names in after for name in names]
    assert len(set(flat)) == len(flat)
    assert with_unique_names(with_unique_names(model)) == with_unique_names(model)
    x = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
    assert np.array_equal(Runner(with_unique_names(model))(x)["y"], Runner(model)(x)["y"])


def test_dynamic_range_makes_integers_of_an_lstm_s_weights(recurrent: tuple[bytes, TensorRanges]) -> None:
    model, _ = recurrent
    plan = make_plan(model, QuantizationConfig(scheme="dynamic_range"))
    quantized = apply_plan(model, plan)
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" not in {op.op for op in plan.float_ops}
    assert len(quantized) < 0.5 * len(model)
    assert relative_error(Runner(quantized)(SERIES)["y"], Runner(model)(SERIES)["y"]) < 0.03
    alone = QuantizationConfig(scheme="dynamic_range", rules=(SchemeRule(operator="UNIDIRECTIONAL_SEQUENCE_LSTM", scheme="float32"),))
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in {op.op for op in make_plan(model, alone).float_ops}


def table(rows: NDArray[np.float32]) -> bytes:
    """word `[n, 1]` to vector `[n, 1, width]`."""
    word, vector = Tensor("word", "int32", (None, 1)), Tensor("vector", "float32", (None, 1, rows.shape[1]))
    gather = Op("GATHER", (Tensor("table", "float32", rows.shape, value=rows), word), (vector,), schema.GatherOptionsT())
    return pack([Graph("serving_default", (word,), (vector,), (gather,))])


def test_dynamic_range_makes_integers_of_a_table_and_gives_its_rows_in_float() -> None:
    rows = RNG.normal(size=(200, 32)).astype(np.float32)
    model = table(rows)
    quantized = apply_plan(model, make_plan(model, QuantizationConfig(scheme="dynamic_range")))
    assert len(quantized) < 0.4 * len(model)
    words = {"word": np.arange(200, dtype=np.int32)}
    scale = np.abs(rows).max() / 127
    np.testing.assert_allclose(Runner(quantized)(words)["vector"][:, 0], np.rint(rows / scale) * scale, rtol=1e-5)
    assert inspect.minimum_runtime(quantized) in (None, "1.14.0")


def test_a_table_whose_rows_one_scale_would_lose_stays_in_float() -> None:
    rows = RNG.normal(size=(200, 32)).astype(np.float32)
    rows[0] *= 1000  # padding, say
    model = table(rows)
    plan = make_plan(model, QuantizationConfig(scheme="dynamic_range"))
    words = {"word": np.arange(200, dtype=np.int32)}
    np.testing.assert_array_equal(Runner(apply_plan(model, plan))(words)["vector"][:, 0], rows)
    assert [op.op for op in plan.float_ops] == ["GATHER"]

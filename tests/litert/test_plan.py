"""Plans and what they make of a model."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils

from tfx_edge.litert import inspect
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import EMPTY, RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan, SchemeRule, TensorRange, TensorRanges

CONFIGS = [
    QuantizationConfig(scheme="float32"),
    QuantizationConfig(scheme="float16"),
    QuantizationConfig(scheme="dynamic_range"),
    QuantizationConfig(scheme="int8"),
    QuantizationConfig(scheme="int8", io_type="int8"),
    QuantizationConfig(scheme="int16x8"),
    QuantizationConfig(scheme="int16x8", io_type="int16"),
    QuantizationConfig(scheme="int8_weights"),
]
INT8, FULL_INT8 = CONFIGS[3:5]
each_config = pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.scheme}-{c.io_type}")

pytestmark = pytest.mark.usefixtures("nothing_on_stdout")


def quantize(model: bytes, config: QuantizationConfig, features: dict[str, Any]) -> tuple[QuantizationPlan, TensorRanges, bytes]:
    ranges = RangeCollector(model)(features)
    plan = make_plan(model, config, ranges, "digest")
    return plan, ranges, apply_plan(model, plan, ranges)


def tensor_types(model: bytes) -> dict[str, int]:
    return {t.name.decode(): t.type for t in inspect.parse(model).subgraphs[0].tensors}


def with_weights(model: bytes, value: float) -> bytes:
    """Puts a value into the first weight of the model's dense layer."""
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[0]
    dense = next(op for op in graph.operators if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) == "FULLY_CONNECTED")
    buffer = parsed.buffers[graph.tensors[dense.inputs[1]].buffer]
    weights = np.frombuffer(buffer.data.tobytes(), np.float32).copy()
    weights[0] = value
    buffer.data = weights.view(np.uint8)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))


@each_config
@pytest.mark.parametrize("model", ["image_model", "scalar_model"])
def test_a_quantized_model_predicts_nearly_what_the_float_one_does(
    request: pytest.FixtureRequest, model: str, config: QuantizationConfig, images: dict[str, Any], scalars: dict[str, Any]
) -> None:
    float_model = request.getfixturevalue(model)
    features = images if model == "image_model" else scalars
    _, _, quantized = quantize(float_model, config, features)
    [expected], [got] = Runner(float_model)(features).values(), Runner(quantized)(features).values()
    spread = float(expected.max() - expected.min())
    allowed = {"float32": 0, "float16": 1e-3}.get(config.scheme, 0.02)
    assert np.abs(got - expected).max() <= allowed * spread
    assert (got.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.97


def test_each_scheme_is_smaller_than_the_one_before(image_model: bytes, images: dict[str, Any]) -> None:
    sizes = [len(quantize(image_model, config, images)[2]) for config in (CONFIGS[0], CONFIGS[1], FULL_INT8)]
    assert sizes[0] > 1.6 * sizes[1] and sizes[1] > 1.3 * sizes[2]


def test_float32_leaves_the_bytes_as_they_are(image_model: bytes) -> None:
    plan = make_plan(image_model, CONFIGS[0])
    assert apply_plan(image_model, plan) == image_model
    assert plan.recipe == ()


def test_an_int8_dense_layer_computes_as_the_formula_says(dense: Any) -> None:
    """Integer arithmetic after https://arxiv.org/abs/1712.05877, weights symmetric with a scale per output channel."""
    _, _, quantized = quantize(dense.flatbuffer, FULL_INT8, {"x": dense.x})
    y = dense(dense.x)

    def affine(low: float, high: float) -> tuple[float, int]:
        low, high = min(low, 0.0), max(high, 0.0)
        scale = (high - low) / 255
        return scale, int(np.rint(-128 - low / scale))

    x_scale, x_zero = affine(dense.x.min(), dense.x.max())
    y_scale, y_zero = affine(y.min(), y.max())
    w_scale = np.abs(dense.kernel).max(axis=0) / 127
    x = np.clip(np.rint(dense.x / x_scale) + x_zero, -128, 127)
    w = np.rint(dense.kernel / w_scale)
    accumulated = (x - x_zero) @ w + np.rint(dense.bias / (x_scale * w_scale))
    expected = np.clip(np.rint(accumulated * x_scale * w_scale / y_scale) + y_zero, y_zero, 127)

    runner = Runner(quantized)
    [y_spec] = runner.signature.outputs
    assert y_spec.scale == pytest.approx(y_scale, rel=1e-5) and y_spec.zero_point == y_zero
    got = np.rint(runner({"x": dense.x})["y"] / y_spec.scale) + y_zero
    assert np.abs(got - expected).max() <= 1  # a last digit of float32 may tip a rounding
    assert (got != expected).mean() < 0.01


def test_full_int8_has_no_float_tensor(image_model: bytes, scalar_model: bytes, images: dict[str, Any], scalars: dict[str, Any]) -> None:
    for model, features in ((image_model, images), (scalar_model, scalars)):
        plan, _, quantized = quantize(model, FULL_INT8, features)
        assert schema.TensorType.FLOAT32 not in tensor_types(quantized).values()
        assert plan.float_ops == ()
        signature = Runner(quantized).signature
        assert {t.dtype for t in (*signature.inputs, *signature.outputs)} == {"int8"}


def test_int8_with_float_ends_is_float_at_the_ends_alone(image_model: bytes, images: dict[str, Any]) -> None:
    plan, _, quantized = quantize(image_model, INT8, images)
    floats = [name for name, kind in tensor_types(quantized).items() if kind == schema.TensorType.FLOAT32]
    assert len(floats) == 2
    assert inspect.operators(quantized) == {**inspect.operators(image_model), "QUANTIZE": 1, "DEQUANTIZE": 1}
    assert plan.float_ops == ()


def test_names_and_any_batch_size_stay(image_model: bytes, images: dict[str, Any]) -> None:
    for config in CONFIGS:
        signature = Runner(quantize(image_model, config, images)[2]).signature
        [x], [y] = signature.inputs, signature.outputs
        assert (x.name, x.shape, y.name, y.shape) == ("image", (None, 8, 8, 1), "digit", (None, 10))


def test_operators_without_an_integer_form_are_listed_with_the_reason(models: Any) -> None:
    import tensorflow as tf

    kernel = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    path = models.save("sine", lambda x: {"y": tf.sin(x @ kernel) @ kernel}, {"x": ([None, 4], "float32")})
    model = models.flatbuffer(path)
    x = {"x": np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)}
    plan, _, quantized = quantize(model, FULL_INT8, x)
    assert [op.op for op in plan.float_ops] == ["SIN"]
    assert plan.float_ops[0].reason == "litert-quantizer has no int8 form of SIN"
    assert plan.float_ops[0].tensor in tensor_types(quantized)
    dynamic, *_ = quantize(model, CONFIGS[2], x)
    assert [op.op for op in dynamic.float_ops] == ["SIN"]
    half, *_ = quantize(model, CONFIGS[1], x)
    assert [op.op for op in half.float_ops] == ["FULLY_CONNECTED", "SIN", "FULLY_CONNECTED"]


@each_config
def test_a_plan_that_was_written_and_read_gives_the_same_bytes_in_another_process(
    image_model: bytes, images: dict[str, Any], config: QuantizationConfig, tmp_path: Path
) -> None:
    plan, ranges, quantized = quantize(image_model, config, images)
    for name, content in (("model", image_model), ("plan", plan.to_json().encode()), ("ranges", ranges.to_json().encode())):
        (tmp_path / name).write_bytes(content)
    code = """
import sys
from pathlib import Path
from tfx_edge.litert.plan import apply_plan
from tfx_edge.schemas import QuantizationPlan, TensorRanges
model, plan, ranges = (Path(name).read_bytes() for name in ("model", "plan", "ranges"))
sys.stdout.buffer.write(apply_plan(model, QuantizationPlan.from_json(plan), TensorRanges.from_json(ranges)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout == quantized


def test_a_plan_for_another_model_is_refused(image_model: bytes, scalar_model: bytes) -> None:
    plan = make_plan(image_model, QuantizationConfig(scheme="dynamic_range"))
    digests = f"{inspect.digest(image_model)[:12]}, this is {inspect.digest(scalar_model)[:12]}"
    with pytest.raises(EdgeError, match=digests):
        apply_plan(scalar_model, plan)


@pytest.mark.parametrize("ranges", [None, EMPTY])
def test_int8_without_calibration_is_refused(image_model: bytes, ranges: TensorRanges | None) -> None:
    with pytest.raises(EdgeError, match="scheme 'int8' or 'int16x8' without calibrated ranges; give Quantizer calibration_data"):
        make_plan(image_model, INT8, ranges)


def test_a_tensor_without_a_range_is_named(image_model: bytes, images: dict[str, Any]) -> None:
    plan, ranges, _ = quantize(image_model, INT8, images)
    name = sorted(ranges.ranges)[2]
    others = ranges.model_copy(update={"ranges": {k: v for k, v in ranges.ranges.items() if k != name}})
    with pytest.raises(EdgeError) as error:
        apply_plan(image_model, plan, others)
    assert f"none for tensor {name!r}" in str(error.value)


@each_config
def test_nan_in_a_weight_is_refused_and_its_layer_named(scalar_model: bytes, scalars: dict[str, Any], config: QuantizationConfig) -> None:
    ranges = RangeCollector(scalar_model)(scalars)
    with pytest.raises(EdgeError, match=r"weight '.*' of the FULLY_CONNECTED that gives '.*dense.*' holds NaN"):
        make_plan(with_weights(scalar_model, np.nan), config, ranges)


def test_a_weight_beyond_half_precision_is_refused_for_float16_alone(scalar_model: bytes) -> None:
    model = with_weights(scalar_model, 1e6)
    with pytest.raises(EdgeError, match=r"holds 1e\+06, which scheme 'float16' can't represent"):
        make_plan(model, QuantizationConfig(scheme="float16"))
    make_plan(model, QuantizationConfig(scheme="dynamic_range"))


def test_an_infinite_weight_is_refused_by_the_integer_schemes(scalar_model: bytes) -> None:
    with pytest.raises(EdgeError, match="holds Inf, which scheme 'dynamic_range' can't represent"):
        make_plan(with_weights(scalar_model, -np.inf), QuantizationConfig(scheme="dynamic_range"))


def test_int8_of_a_model_with_branches_is_refused(models: Any) -> None:
    import tensorflow as tf

    def loop(x: Any) -> dict[str, Any]:
        return {"y": tf.while_loop(lambda v: tf.reduce_max(v) < 10, lambda v: [v + 1.0], [x])[0]}

    model = models.flatbuffer(models.save("loop", loop, {"x": ([None, 2], "float32")}))
    assert "WHILE" in inspect.operators(model)
    ranges = RangeCollector(model)({"x": np.zeros((3, 2), np.float32)})
    with pytest.raises(EdgeError, match="control flow"):
        make_plan(model, INT8, ranges)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (5, 5), (-3, -3), (2, 4)])
def test_a_tensor_that_never_changed_gives_a_model_that_runs(dense: Any, low: float, high: float) -> None:
    ranges = RangeCollector(dense.flatbuffer)({"x": dense.x})
    for name in ranges.ranges:
        odd = ranges.model_copy(update={"ranges": {**ranges.ranges, name: TensorRange(min=low, max=high)}})
        quantized = apply_plan(dense.flatbuffer, make_plan(dense.flatbuffer, FULL_INT8, odd), odd)
        assert np.isfinite(Runner(quantized)({"x": dense.x})["y"]).all()


def test_a_dead_layer_is_quantized_and_stays_dead(models: Any) -> None:
    import tensorflow as tf

    kernel = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    path = models.save("dead", lambda x: {"y": tf.nn.relu(1e4 * x @ kernel - 1e6) @ kernel + x @ kernel}, {"x": ([None, 4], "float32")})
    model = models.flatbuffer(path)
    x = {"x": np.random.default_rng(1).uniform(-1, 1, size=(50, 4)).astype(np.float32)}
    _, ranges, quantized = quantize(model, FULL_INT8, x)
    assert TensorRange(min=0, max=0) in ranges.ranges.values()
    assert np.abs(Runner(quantized)(x)["y"] - x["x"] @ kernel).max() < 0.1


@pytest.mark.parametrize(("which", "low", "high"), [("output", 0, 1e-12), ("input", -1e30, 1e30)])
def test_ranges_too_far_apart_for_litert_are_named(dense: Any, which: str, low: float, high: float) -> None:
    ranges = RangeCollector(dense.flatbuffer)({"x": dense.x})
    name = next(n for n in ranges.ranges if n.startswith("serving_default") == (which == "input"))
    odd = ranges.model_copy(update={"ranges": {**ranges.ranges, name: TensorRange(min=low, max=high)}})
    with pytest.raises(EdgeError, match="LiteRT can't load it") as error:
        make_plan(dense.flatbuffer, FULL_INT8, odd)
    assert f"{high - low:g}" in str(error.value) and name in str(error.value)


def test_integer_inputs_stay_integers(models: Any) -> None:
    import tensorflow as tf

    table = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    kernel = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)

    def function(token: Any) -> dict[str, Any]:
        return {"y": tf.gather(table, token[:, 0]) @ kernel}

    model = models.flatbuffer(models.save("embedding", function, {"token": ([None, 1], "int32")}))
    tokens = {"token": np.arange(50, dtype=np.int64)}
    expected = Runner(model)(tokens)["y"]
    for config in CONFIGS[2:]:
        runner = Runner(quantize(model, config, tokens)[2])
        assert runner.signature.inputs[0].dtype == "int32"
        assert np.abs(runner(tokens)["y"] - expected).max() < 0.05 * np.abs(expected).max()


@pytest.mark.parametrize("config", CONFIGS[1:3], ids=lambda c: c.scheme)
def test_weights_of_a_large_model_stay_inside_the_flatbuffer(models: Any, config: QuantizationConfig) -> None:
    kernel = np.random.default_rng(0).normal(size=(600, 600)).astype(np.float32) / 25
    model = models.flatbuffer(models.save("large", lambda x: {"y": x @ kernel}, {"x": ([None, 600], "float32")}))
    quantized = apply_plan(model, make_plan(model, config))
    assert len(quantized) > 2**18
    buffers = schema.Model.GetRootAs(quantized, 0)
    assert all(buffers.Buffers(i).Offset() == 0 for i in range(buffers.BuffersLength()))
    x = np.random.default_rng(1).normal(size=(5, 600)).astype(np.float32)
    np.testing.assert_allclose(Runner(quantized)({"x": x})["y"], x @ kernel, atol=0.05)


def test_the_minimum_runtime_is_that_of_the_quantized_kernels(image_model: bytes, images: dict[str, Any]) -> None:
    """As TFLiteConverter's own rules have it: LiteRT's versioning tables."""
    needs = [inspect.minimum_runtime(quantize(image_model, config, images)[2]) for config in CONFIGS]
    assert needs == ["1.5.0", "1.15.0", "2.17.0", "1.14.0", "1.14.0", "2.17.0", "2.17.0", "1.14.0"]


def test_another_range_gives_other_bytes(image_model: bytes, images: dict[str, Any]) -> None:
    models = [quantize(image_model, FULL_INT8, {"image": images["image"] * factor})[2] for factor in (1, 2)]
    assert all(a != b for a, b in itertools.combinations(models, 2))


def test_an_operator_that_a_person_took_out_of_the_recipe_stays_float(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    plan, ranges, _ = quantize(scalar_model, FULL_INT8, scalars)
    edited = plan.model_copy(
        update={"recipe": (*plan.recipe, {"regex": ".*", "operation": "CONCATENATION", "algorithm_key": "no_quantize"})}
    )
    types = tensor_types(apply_plan(scalar_model, edited, ranges))
    [name] = [name for name in types if name.endswith("/concat")]
    assert types[name] == schema.TensorType.FLOAT32
    assert tensor_types(apply_plan(scalar_model, plan, ranges))[name] == schema.TensorType.INT8


def test_a_recipe_that_litert_quantizer_does_not_understand_is_refused(image_model: bytes) -> None:
    plan = make_plan(image_model, CONFIGS[2])
    broken = plan.model_copy(update={"recipe": ({"regex": ".*", "operation": "FLY", "algorithm_key": "min_max_uniform_quantize"},)})
    with pytest.raises(EdgeError, match="litert-quantizer can't quantize the model: .*; the plan's recipe isn't what its config gives"):
        apply_plan(image_model, broken)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"io_type": "int8"}, "io_type 'int8', but 'image' of the quantized model is float32"),
        ({"io_type": "int8", "integer_only": True, "granularity": "channel"}, "io_type 'int8'"),
    ],
)
def test_a_promise_that_a_person_put_into_the_plan_is_not_taken_on_trust(
    image_model: bytes, images: dict[str, Any], change: dict[str, Any], text: str
) -> None:
    plan, ranges, _ = quantize(image_model, INT8, images)
    edited = json.loads(plan.to_json())
    edited["config"] |= change
    with pytest.raises(EdgeError, match=text):
        apply_plan(image_model, QuantizationPlan.from_json(json.dumps(edited)), ranges)


def test_a_plan_that_promises_integers_alone_and_keeps_a_float_operator_is_refused(scalar_model: bytes, scalars: dict[str, Any]) -> None:
    plan, ranges, _ = quantize(scalar_model, FULL_INT8, scalars)
    left = {"regex": ".*", "operation": "CONCATENATION", "algorithm_key": "no_quantize"}
    promising = plan.config.model_copy(update={"integer_only": True})
    apply_plan(scalar_model, plan.model_copy(update={"config": promising}), ranges)
    with pytest.raises(EdgeError, match="integer_only, but CONCATENATION"):
        apply_plan(scalar_model, plan.model_copy(update={"config": promising, "recipe": (*plan.recipe, left)}), ranges)


def test_16_bit_activations_are_nearer_to_float_than_8_bit_ones(image_model: bytes, images: dict[str, Any]) -> None:
    [expected] = Runner(image_model)(images).values()

    def error(config: QuantizationConfig) -> float:
        [got] = Runner(quantize(image_model, config, images)[2])(images).values()
        return float(np.abs(got - expected).mean())

    assert error(QuantizationConfig(scheme="int16x8")) < error(INT8)


def test_full_int16_has_no_float_tensor(image_model: bytes, images: dict[str, Any]) -> None:
    _, _, quantized = quantize(image_model, QuantizationConfig(scheme="int16x8", io_type="int16"), images)
    assert schema.TensorType.FLOAT32 not in tensor_types(quantized).values()
    assert {spec.dtype for spec in Runner(quantized).signature.inputs} == {"int16"}


def test_one_scale_a_tensor_leaves_every_weight_a_single_scale(image_model: bytes, images: dict[str, Any]) -> None:
    def most_scales(config: QuantizationConfig) -> int:
        tensors = inspect.parse(quantize(image_model, config, images)[2]).subgraphs[0].tensors
        return max(len(t.quantization.scale) for t in tensors if t.quantization is not None and t.quantization.scale is not None)

    assert most_scales(QuantizationConfig(scheme="int8", granularity="tensor")) == 1
    assert most_scales(INT8) > 1


def test_a_rule_gives_the_operators_that_it_names_another_scheme(image_model: bytes, images: dict[str, Any]) -> None:
    kind, keep = "FULLY_CONNECTED", SchemeRule(operator="FULLY_CONNECTED", scheme="float32")
    plan, _, quantized = quantize(image_model, QuantizationConfig(scheme="int8", rules=(keep,)), images)
    assert {op.op for op in plan.float_ops} == {kind}
    assert {op.reason for op in plan.float_ops} == {"scheme 'float32' computes in float"}
    back = SchemeRule(scheme="int8")
    assert quantize(image_model, QuantizationConfig(scheme="int8", rules=(keep, back)), images)[0].float_ops == ()
    everything = QuantizationConfig(scheme="int8", rules=(SchemeRule(scheme="float32"),))
    assert schema.TensorType.INT8 not in tensor_types(quantize(image_model, everything, images)[2]).values()
    only = QuantizationConfig(scheme="float32", rules=(SchemeRule(operator=kind, scheme="int8_weights"),))
    assert len(quantized) > len(quantize(image_model, INT8, images)[2])
    assert schema.TensorType.INT8 in tensor_types(quantize(image_model, only, images)[2]).values()


def test_a_rule_about_no_operator_of_the_model_is_refused(image_model: bytes, images: dict[str, Any]) -> None:
    config = QuantizationConfig(rules=(SchemeRule(operator="CONV2D", scheme="float32"),))
    with pytest.raises(EdgeError, match="rule operator 'CONV2D'.*FULLY_CONNECTED"):
        make_plan(image_model, config, RangeCollector(image_model)(images))


@pytest.mark.parametrize(("change", "text"), [({"method": "qat"}, "'qat' with a config without qat"), ({"recipe": []}, "an empty recipe")])
def test_a_plan_that_a_person_changed_so_that_nothing_would_be_quantized_is_refused(
    image_model: bytes, images: dict[str, Any], change: dict[str, Any], text: str
) -> None:
    plan = make_plan(image_model, INT8, RangeCollector(image_model)(images))
    with pytest.raises(EdgeError, match=text):
        QuantizationPlan.from_json(json.dumps({**json.loads(plan.to_json()), **change}))


def test_a_recipe_with_a_pattern_that_is_none_is_refused(image_model: bytes, images: dict[str, Any]) -> None:
    ranges = RangeCollector(image_model)(images)
    plan = make_plan(image_model, INT8, ranges)
    broken = plan.model_copy(update={"recipe": ({**plan.recipe[0], "regex": "("},)})
    with pytest.raises(EdgeError, match="litert-quantizer can't quantize the model"):
        apply_plan(image_model, broken, ranges)

"""4-bit weights: what becomes of them, by which scale, and where they may run."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, QuantizationConfig, SchemeRule
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.schemes import Scheme
from tfx_edge.schemas.versions import runtime_supports

RNG = np.random.default_rng(0)
INT4 = [
    QuantizationConfig(scheme="int4_weights"),
    QuantizationConfig(scheme="int4_dynamic_range"),
    QuantizationConfig(scheme="int4_dynamic_range", granularity="block_32"),
]
each_int4 = pytest.mark.parametrize("config", INT4, ids=lambda c: f"{c.scheme}-{c.granularity}")


def dense(x: Tensor, weights: NDArray[np.float32], output: str) -> Op:
    constants = (
        Tensor(f"w_{output}", "float32", weights.shape, value=weights),
        Tensor(f"b_{output}", "float32", (len(weights),), value=np.zeros(len(weights))),
    )
    return Op("FULLY_CONNECTED", (x, *constants), (Tensor(output, "float32", (None, len(weights))),), schema.FullyConnectedOptionsT())


def model_of(*weights: NDArray[np.float32]) -> bytes:
    """Dense layers one behind the other, weights `[outputs, inputs]`."""
    x = Tensor("x", "float32", (None, weights[0].shape[1]))
    ops: list[Op] = []
    for number, values in enumerate(weights):
        ops.append(dense(ops[-1].outputs[0] if ops else x, values, f"layer{number}"))
    return pack([Graph("serving_default", (x,), ops[-1].outputs, tuple(ops))])


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.normal(size=shape).astype(np.float32)


def quantized(model: bytes, config: QuantizationConfig) -> bytes:
    return apply_plan(model, make_plan(model, config))


def weight_types(model: bytes) -> list[str]:
    """The type that the weights of each dense layer are stored in."""
    names = {schema.TensorType.INT4: "int4", schema.TensorType.INT8: "int8", schema.TensorType.FLOAT32: "float32"}
    parsed = inspect.parse(model)
    stored = {}
    found = []
    for graph, op, kind, _ in inspect.named_operators(parsed):
        if kind == "DEQUANTIZE":
            stored[op.outputs[0]] = graph.tensors[op.inputs[0]].type
        if kind == "FULLY_CONNECTED":
            found.append(names[stored.get(op.inputs[1], graph.tensors[op.inputs[1]].type)])
    return found


def test_4_bit_weights_alone_are_the_nearest_of_fifteen_values_a_channel() -> None:
    weights = normal(5, 24) * np.float32([[1], [10], [0.1], [3], [100]])
    scale = np.abs(weights).max(axis=1, keepdims=True) / 7
    x = normal(30, 24)
    got = Runner(quantized(model_of(weights), INT4[0]))({"x": x})["layer0"]
    np.testing.assert_allclose(got, x @ (np.rint(weights / scale) * scale).T, rtol=1e-4, atol=1e-3)


@each_int4
def test_4_bit_weights_take_half_of_the_place_of_8_bit_ones(config: QuantizationConfig) -> None:
    model = model_of(normal(64, 256))
    eight = "int8_weights" if config.scheme == "int4_weights" else "dynamic_range"
    saved = len(quantized(model, QuantizationConfig(scheme=eight))) - len(quantized(model, config))
    scales = 2 * 64 * (256 // 32) - 12 * 64 if config.granularity == "block_32" else 0  # instead of a scale and zero point a channel
    assert saved == pytest.approx(64 * 256 / 2 - scales, abs=300)


def test_blocks_keep_what_one_scale_a_channel_loses() -> None:
    weights = normal(16, 64)
    weights[:, :32] *= 100
    x = normal(40, 64)
    x[:, :32] = 0  # only the small weights matter
    errors = [np.abs(Runner(quantized(model_of(weights), c))({"x": x})["layer0"] - x @ weights.T).mean() for c in INT4[1:]]
    assert errors[1] < 0.2 * errors[0]


def test_a_layer_that_does_not_divide_into_blocks_has_4_bits_all_the_same() -> None:
    model = model_of(normal(48, 64), normal(32, 48))
    plan = make_plan(model, INT4[2])
    assert weight_types(apply_plan(model, plan)) == ["int4", "int4"]
    assert plan.float_ops == ()


def test_a_rule_gives_one_layer_4_bits_and_leaves_the_others() -> None:
    model = model_of(normal(32, 64), normal(48, 32), normal(32, 48))
    for granularity in ("channel", "block_32"):
        rule = SchemeRule(operator="FULLY_CONNECTED", tensor="layer[12]", scheme="int4_dynamic_range", granularity=granularity)
        got = quantized(model, QuantizationConfig(scheme="dynamic_range", rules=(rule,)))
        assert weight_types(got) == ["int8", "int4", "int4"]


@each_int4
def test_4_bit_weights_are_refused_for_a_runtime_that_computes_garbage_from_them(config: QuantizationConfig) -> None:
    model = quantized(model_of(normal(32, 64)), config)
    needs = inspect.minimum_runtime(model)
    assert not runtime_supports(needs, "2.16.2")
    assert runtime_supports(needs)  # that of LiteRT here


@each_int4
def test_the_runtime_does_not_hang_on_what_the_file_says(config: QuantizationConfig) -> None:
    parsed = inspect.parse(quantized(model_of(normal(32, 64)), config))
    for claim in (b"1.5.0", b""):  # as litert-quantizer leaves it, and as a file without any
        buffer, entry = schema.BufferT(), schema.MetadataT()
        buffer.data = np.frombuffer(claim.ljust(16, b"\0"), np.uint8)
        entry.name, entry.buffer = b"min_runtime_version", len(parsed.buffers)
        parsed.buffers.append(buffer)
        parsed.metadata = [entry]
        model = bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))
        assert not runtime_supports(inspect.minimum_runtime(model), "2.16.2")


def test_blocks_need_a_newer_runtime_than_channels() -> None:
    model = model_of(normal(32, 64))
    assert [inspect.minimum_runtime(quantized(model, c)) for c in INT4] == ["2.18.0", "2.20.0", "2.21.0"]


@pytest.mark.parametrize("scheme", ["int8", "dynamic_range", "int8_weights", "int4_weights", "float16"])
def test_blocks_where_the_weights_would_stay_float_are_refused(scheme: Scheme) -> None:
    for make in (
        lambda: QuantizationConfig(scheme=scheme, granularity="block_64"),
        lambda: SchemeRule(scheme=scheme, granularity="block_64"),
    ):
        with pytest.raises(ConfigError, match=f"granularity 'block_64' with scheme '{scheme}'; blocks go with 'int4_dynamic_range' alone"):
            make()


def test_a_file_that_is_no_smaller_has_the_reason_in_the_plan() -> None:
    tiny = make_plan(model_of(normal(2, 2)), QuantizationConfig(scheme="int8_weights"))
    assert tiny.size_reason is not None
    assert "weights (24 bytes) are too few" in tiny.size_reason
    assert make_plan(model_of(normal(32, 64)), QuantizationConfig(scheme="int8_weights")).size_reason is None
    assert make_plan(model_of(normal(2, 2)), QuantizationConfig(scheme="float32")).size_reason is None


def test_weights_are_checked_by_the_scheme_that_the_rules_give_their_operator() -> None:
    wide, fine = normal(4, 4), normal(4, 4)
    wide[0, 0] = 1e6
    model = model_of(wide, fine)
    half = QuantizationConfig(scheme="float16", rules=(SchemeRule(tensor="layer0", scheme="float32"),))
    make_plan(model, half)
    with pytest.raises(EdgeError, match=r"FULLY_CONNECTED that gives 'layer0_tensor' holds 1e\+06, which scheme 'float16' can't represent"):
        make_plan(model, QuantizationConfig(scheme="float32", rules=(SchemeRule(tensor="layer0", scheme="float16"),)))

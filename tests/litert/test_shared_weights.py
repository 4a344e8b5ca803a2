"""Weights that share values keep them few as integers: such an operator gets one scale, every other one scale a channel."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.recipes import recipe
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.weights import sharing_operators
from tfx_edge.schemas import QuantizationConfig

RNG = np.random.default_rng(0)
INT8 = QuantizationConfig(scheme="int8", io_type="int8")
INTEGER_SCHEMES = [INT8, QuantizationConfig(scheme="dynamic_range")]


def clustered(shape: tuple[int, ...], values: int) -> NDArray[np.float32]:
    """Every value as often as the others, in each output channel at another magnitude of the largest."""
    drawn = np.resize(np.linspace(-1, 0.9, values, dtype=np.float32), shape)
    return RNG.permuted(drawn, axis=-1)


def dense(x: Tensor, weights: NDArray[np.float32], output: str) -> Op:
    width = len(weights)
    constants = (
        Tensor(f"w_{output}", "float32", weights.shape, value=weights),
        Tensor(f"b_{output}", "float32", (width,), value=np.zeros(width)),
    )
    return Op("FULLY_CONNECTED", (x, *constants), (Tensor(output, "float32", (None, width)),), schema.FullyConnectedOptionsT())


def two_layers(first: NDArray[np.float32], second: NDArray[np.float32], hidden: str = "hidden") -> bytes:
    x = Tensor("x", "float32", (None, first.shape[1]))
    one = dense(x, first, hidden)
    two = dense(one.outputs[0], second, "y")
    return pack([Graph("serving_default", (x,), two.outputs, (one, two))])


def convolution(weights: NDArray[np.float32]) -> bytes:
    channels = len(weights)
    x, y = Tensor("x", "float32", (None, 6, 6, weights.shape[-1])), Tensor("y", "float32", (None, 4, 4, channels))
    options = schema.Conv2DOptionsT()
    options.padding, options.strideH, options.strideW = schema.Padding.VALID, 1, 1
    options.dilationHFactor = options.dilationWFactor = 1
    constants = (Tensor("w", "float32", weights.shape, value=weights), Tensor("b", "float32", (channels,), value=np.zeros(channels)))
    return pack([Graph("serving_default", (x,), (y,), (Op("CONV_2D", (x, *constants), (y,), options),))])


def quantized(model: bytes, config: QuantizationConfig, x: NDArray[np.float32]) -> bytes:
    ranges = RangeCollector(model)({"x": x})
    return apply_plan(model, make_plan(model, config, ranges, "digest"), ranges)


def weights_of(model: bytes) -> list[tuple[NDArray[np.int8], int]]:
    """Integer weights of the operators in order, and how many scales each has."""
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[0]
    found = []
    for op in graph.operators:
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in ("FULLY_CONNECTED", "CONV_2D"):
            tensor = graph.tensors[op.inputs[1]]
            data = np.frombuffer(bytes(parsed.buffers[tensor.buffer].data), np.int8)
            found.append((data, len(tensor.quantization.scale)))
    return found


@pytest.mark.parametrize("config", INTEGER_SCHEMES, ids=lambda c: c.scheme)
@pytest.mark.parametrize("name", ["hidden", "model/dense/MatMul;model/dense/Relu+(1)"])
def test_only_the_operator_that_shares_gets_one_scale_and_no_more_integers_than_values(config: QuantizationConfig, name: str) -> None:
    shared = clustered((32, 16), 6) * 1.0
    shared[::2] *= shared[::2] < 0.8  # rows without the largest value, whose own scale would make other integers of the rest
    other = RNG.normal(size=(8, 32)).astype(np.float32)
    model = two_layers(shared, other, name)
    assert sharing_operators(model) == [("FULLY_CONNECTED", f"{name}_tensor")]
    x = RNG.normal(size=(64, 16)).astype(np.float32)
    (integers, scales), (_, other_scales) = weights_of(built := quantized(model, config, x))
    assert (scales, np.unique(integers).size) == (1, np.unique(shared).size)
    assert other_scales == 8
    [expected], [got] = Runner(model)({"x": x}).values(), Runner(built)({"x": x}).values()
    assert np.abs(got - expected).max() < 0.05 * np.ptp(expected)


@pytest.mark.parametrize("config", INTEGER_SCHEMES, ids=lambda c: c.scheme)
def test_a_convolution_that_shares_gets_one_scale(config: QuantizationConfig) -> None:
    model = convolution(clustered((12, 3, 3, 8), 7))
    x = RNG.normal(size=(8, 6, 6, 8)).astype(np.float32)
    [(integers, scales)] = weights_of(quantized(model, config, x))
    assert (scales, np.unique(integers).size) == (1, 7)


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        (clustered((40, 40), 255), True),
        (clustered((40, 40), 256), False),  # more than int8 holds apart
        (clustered((20, 10), 100), True),
        (clustered((20, 10), 101), False),  # fewer than two weights a value: as they come
        (RNG.normal(size=(20, 10)).astype(np.float32), False),
        (np.where(RNG.random((20, 10)) < 0.9, 0, RNG.normal(size=(20, 10))).astype(np.float32), False),  # pruned, no more
        (np.where(RNG.random((20, 10)) < 0.9, 0, clustered((20, 10), 5)).astype(np.float32), True),
        (np.zeros((20, 10), np.float32), False),
    ],
)
def test_weights_share_when_their_values_fit_int8_and_come_twice_on_average_zeros_apart(weights: NDArray[np.float32], shares: bool) -> None:
    model = two_layers(weights, RNG.normal(size=(3, len(weights))).astype(np.float32))
    assert sharing_operators(model) == [("FULLY_CONNECTED", "hidden_tensor")] * shares


def test_the_steps_of_sharing_operators_come_behind_the_general_one_and_before_the_inputs_and_outputs() -> None:
    steps: list[Any] = list(recipe(QuantizationConfig(scheme="int8", io_type="float32"), [("CONV_2D", "a.b")]))
    assert [(step["operation"], step["regex"]) for step in steps] == [
        ("*", ".*"),
        ("CONV_2D", r"^a\.b(;|$)"),
        ("INPUT", ".*"),
        ("OUTPUT", ".*"),
    ]
    assert [step["op_config"]["weight_tensor_config"]["granularity"] for step in steps[:2]] == ["CHANNELWISE", "TENSORWISE"]
    assert recipe(QuantizationConfig(scheme="float16"), [("CONV_2D", "a.b")]) == recipe(QuantizationConfig(scheme="float16"))

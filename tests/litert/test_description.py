"""What is said of a flatbuffer, also of one that is damaged or made to do harm."""

import random

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from flatbuffers import Builder
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.description import describe, describe_safely
from tfx_edge.schemas import EdgeError

MUTATED = 10_000


def dense(**quantized):
    x, y = Tensor("x", "float32", (None, 4)), Tensor("y", "float32", (None, 3))
    weights = Tensor("w", "float32", (3, 4), value=np.ones((3, 4), np.float32))
    op = Op("FULLY_CONNECTED", (x, weights, None), (y,), schema.FullyConnectedOptionsT())
    return pack([Graph("serving_default", (x,), (y,), (op,))])


def test_a_description_says_what_litert_says_of_a_converted_model(image_model):
    described, interpreter = describe(image_model), Interpreter(model_content=image_model)
    [graph] = described.graphs
    for details in interpreter.get_tensor_details():
        if details["index"] < len(graph.tensors):  # behind them are LiteRT's own
            tensor = graph.tensors[details["index"]]
            assert tensor.name == details["name"] and tensor.dtype.lower() == np.dtype(details["dtype"]).name
            assert list(tensor.shape) == list(details["shape_signature"])
    assert described.operators["CONV_2D"] == 1 and sum(described.operators.values()) == len(graph.operators)
    [signature] = described.signatures.values()
    assert (signature.input_names, signature.output_names) == (("image",), ("digit",))
    constants = sum(tensor.bytes for tensor in graph.tensors if tensor.bytes)
    assert 0 < constants <= described.constant_bytes < described.size_bytes
    assert {target.target for target in described.targets} == {"edgetpu", "gpu-delegate"}
    assert all(target.supported + sum(target.unsupported.values()) == len(graph.operators) for target in described.targets)


def test_scales_and_zero_points_are_those_in_the_file():
    x = Tensor("x", "int8", (None, 4), scale=0.5, zero_point=-3)
    y = Tensor("y", "float32", (None, 4))
    described = describe(pack([Graph("serving_default", (x,), (y,), (Op("DEQUANTIZE", (x,), (y,), schema.DequantizeOptionsT()),))]))
    given = described.graphs[0].tensors[described.graphs[0].inputs[0]]
    assert (given.scales, given.zero_points) == ((0.5,), (-3,))
    assert described.signatures["serving_default"].inputs[0].scale == 0.5


def test_of_mutated_and_truncated_files_each_is_described_or_refused_in_one_line():
    whole, generator = dense(), random.Random(0)
    outcomes = {"described": 0, "refused": 0}
    for _ in range(MUTATED):
        damaged = bytearray(whole)
        for _ in range(generator.choice((1, 1, 1, 4, 64))):
            damaged[generator.randrange(len(damaged))] = generator.choice((0, 1, 127, 128, 255, generator.randrange(256)))
        if generator.random() < 0.2:
            damaged = damaged[: generator.randrange(len(damaged))]
        try:
            describe(bytes(damaged)).to_json()
            outcomes["described"] += 1
        except EdgeError as error:
            assert "\n" not in str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > MUTATED // 20, outcomes


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\0\0\0\0TFL3", b"\x1c\0\0\0TFL3" + b"\xff" * 64, b"PK\x03\x04" * 20])
def test_what_is_no_flatbuffer_is_refused(content):
    with pytest.raises(EdgeError, match="flatbuffer"):
        describe(content)


def test_a_file_that_names_one_tensor_400_million_times_is_stopped():
    with pytest.raises(EdgeError, match="didn't finish within 3 s|more than 4 GB"):
        describe_safely(_bomb(20_000), time_limit_s=3)


def _bomb(times: int) -> bytes:
    """Every one of many entries in the list of graphs is the same graph, every one in its list of tensors the same tensor."""
    builder = Builder()
    name = builder.CreateString("t")
    schema.TensorStart(builder)
    schema.TensorAddName(builder, name)
    tensors = _repeated(builder, schema.TensorEnd(builder), times)
    schema.SubGraphStart(builder)
    schema.SubGraphAddTensors(builder, tensors)
    graphs = _repeated(builder, schema.SubGraphEnd(builder), times)
    schema.ModelStart(builder)
    schema.ModelAddSubgraphs(builder, graphs)
    builder.Finish(schema.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


def _repeated(builder: Builder, offset: int, times: int) -> int:
    builder.StartVector(4, times, 4)
    for _ in range(times):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()

"""Two flatbuffers in one compute what they compute one after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.join import join
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

RANGES = {"int8": (0.05, 3), "uint8": (0.04, 117), "int16": (0.001, 0)}


def constant(name: str, value: Any) -> Tensor:
    array = np.asarray(value)
    return Tensor(name, str(array.dtype), array.shape, value=array)


def computed(draw: st.DrawFn, have: list[Tensor], ops: list[Op], name: str, generator: np.random.Generator) -> Tensor:
    """One more float tensor, computed from those that are there."""
    x = draw(st.sampled_from(have))
    [batch, width] = x.shape
    kind = draw(st.sampled_from(("FULLY_CONNECTED", "MUL", "ADD", "ABS", "IF")))
    y = Tensor(name, "float32", (batch, width))
    if kind == "FULLY_CONNECTED":
        units = draw(st.integers(1, 3))
        y = Tensor(name, "float32", (batch, units))
        weights = constant("w", generator.normal(size=(units, width)).astype(np.float32))
        ops.append(Op(kind, (x, weights, None), (y,), schema.FullyConnectedOptionsT()))
    elif kind == "ADD":  # with another one where it fits: a graph isn't a chain
        twins = [t for t in have if t.shape == x.shape]
        ops.append(Op(kind, (x, draw(st.sampled_from(twins))), (y,), schema.AddOptionsT()))
    elif kind == "MUL":
        ops.append(Op(kind, (x, constant("factor", generator.normal(size=width).astype(np.float32))), (y,), schema.MulOptionsT()))
    elif kind == "IF":  # with branches that stand in graphs of their own
        options = schema.IfOptionsT()
        options.thenSubgraphIndex, options.elseSubgraphIndex = draw(st.sampled_from([(1, 2), (2, 1)]))
        ops.append(Op(kind, (constant("which", np.array([draw(st.booleans())])), x), (y,), options))
    else:
        ops.append(Op(kind, (x,), (y,)))
    return y


def branch(factor: float) -> Graph:
    """What an IF of any of these models may run; inner tensors have any width."""
    x, y = Tensor("in", "float32", (None, None)), Tensor("out", "float32", (None, None))
    return Graph(None, (x,), (y,), (Op("MUL", (x, constant("factor", np.float32(factor))), (y,), schema.MulOptionsT()),))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A model and another that takes some of its outputs, some of them quantized."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch = draw(st.sampled_from((None, 3)))
    into = tuple(Tensor(f"in{i}", "float32", (batch, draw(st.integers(1, 3)))) for i in range(draw(st.integers(1, 3))))
    have, ops = list(into), []
    for i in range(draw(st.integers(1, 5))):
        have.append(computed(draw, have, ops, f"between{i}", generator))
    between = tuple(draw(st.lists(st.sampled_from(have), min_size=1, unique_by=id)))
    first = Graph("serving_default", into, between, tuple(ops))

    taken = []
    have, ops = [], []
    for tensor in draw(st.lists(st.sampled_from(between), min_size=1, unique_by=id)):
        dtype = draw(st.sampled_from(("float32", *RANGES)))
        given = Tensor(tensor.name, dtype, tensor.shape, *RANGES.get(dtype, ()))
        taken.append(given)
        if dtype != "float32":
            real = Tensor(f"{tensor.name}_real", "float32", tensor.shape)
            ops.append(Op("DEQUANTIZE", (given,), (real,)))
            have.append(real)
        else:
            have.append(given)
    for i in range(draw(st.integers(0, 3))):
        have.append(computed(draw, have, ops, f"out{i}", generator))
    out = tuple(draw(st.lists(st.sampled_from([t for t in have if t not in taken] or have), min_size=1, unique_by=id)))
    second = Graph("serving_default", tuple(taken), out, tuple(ops))
    return pack([first, branch(2.0), branch(-1.0)]), pack([second, branch(0.5), branch(3.0)])


def values(runner: Runner, count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(seed)
    return {s.name: generator.normal(size=(count, *s.shape[1:])).astype(np.float32) for s in runner.signature.inputs}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs(), st.integers(1, 7))
def test_joined_models_compute_what_they_compute_one_after_the_other(models: tuple[bytes, bytes], count: int) -> None:
    first, second = models
    joined, front, back = Runner(join(first, second)), Runner(first), Runner(second)
    features = values(front, count)
    between = front(features)
    want, have = back(between), joined(features)
    assert have.keys() == want.keys()
    assert joined.batch_size == front.batch_size
    for spec in back.signature.inputs:  # LiteRT rounds a half up where the runner rounds it to even, if an input is quantized
        if spec.scale is not None:
            between[spec.name] = between[spec.name] + np.float32(spec.scale)
    slack = {name: 1e-5 + np.abs(back(between)[name] - value).max() for name, value in want.items()}
    for name, value in want.items():
        assert np.abs(have[name] - value).max() <= slack[name]
    assert set(joined.signature.input_names) <= set(front.signature.input_names)


def relu(name: str, x: Tensor) -> tuple[Tensor, Op]:
    y = Tensor(name, "float32", x.shape)
    return y, Op("RELU", (x,), (y,))


def simple(**inputs: Any) -> bytes:
    """A model that doubles each input: `name=(dtype, shape)`; outputs are called as the inputs, with `_2` behind."""
    into = tuple(Tensor(name, *what) for name, what in inputs.items())
    out = tuple(Tensor(f"{t.name}_2", t.dtype, t.shape) for t in into)
    ops = tuple(Op("ADD", (x, x), (y,), schema.AddOptionsT()) for x, y in zip(into, out, strict=True))
    return pack([Graph("serving_default", into, out, ops)])


def giving(**outputs: Any) -> bytes:
    """A model from `a` and `b` `[n, 1]` to outputs by name: each a list of operators between `a` or `b` and itself."""
    a, b = Tensor("a", "float32", (None, 1)), Tensor("b", "float32", (None, 1))
    out, ops = [], []
    for name, (source, shape) in outputs.items():
        y = Tensor(name, "float32", shape)
        target = constant(f"{name}_shape", np.array([-1, *shape[1:]], np.int32))
        ops.append(Op("RESHAPE", ({"a": a, "b": b}[source], target), (y,)))
        out.append(y)
    return pack([Graph("serving_default", (a, b), tuple(out), tuple(ops))])


def test_what_the_second_does_not_take_is_gone_with_its_inputs() -> None:
    first = giving(x=("a", (None, 1)), unwanted=("b", (None, 1)))
    joined = join(first, simple(x=("float32", (None, 1))))
    assert Runner(joined).signature.input_names == ("a",)
    assert inspect.operators(joined) == {"ADD": 1, "RESHAPE": 1}
    assert len(joined) < len(join(giving(x=("a", (None, 1)), unwanted=("a", (None, 1))), simple(x=("float32", (None, 1))))) + 100
    names = [t.name for t in inspect.parse(joined).subgraphs[0].tensors]
    assert not any(b"unwanted" in name or b"b_tensor" in name for name in names)


def test_the_second_keeps_its_names_and_the_firsts_are_told_apart() -> None:
    first, second = giving(x=("a", (None, 1))), simple(x=("int8", (None, 1), 0.5, 0))
    names = [t.name.decode() for t in inspect.parse(join(first, second)).subgraphs[0].tensors]
    assert len(set(names)) == len(names)
    assert {t.name.decode() for t in inspect.parse(second).subgraphs[0].tensors} <= set(names)
    assert {"preprocessing/a_tensor", "preprocessing/x_tensor"} <= set(names)


def test_graphs_and_operator_codes_that_nothing_calls_are_gone() -> None:
    x, y = Tensor("a", "float32", (None, 1)), Tensor("unwanted", "float32", (None, 1))
    options = schema.IfOptionsT()
    options.thenSubgraphIndex, options.elseSubgraphIndex = 1, 2
    same = Tensor("x", "float32", (None, 1))
    ops = (Op("IF", (constant("which", np.array([True])), x), (y,), options), Op("RELU", (x,), (same,)))
    first = pack([Graph("serving_default", (x,), (same, y), ops), branch(2.0), branch(3.0)])
    parsed = inspect.parse(join(first, simple(x=("float32", (None, 1)))))
    assert len(parsed.subgraphs) == 1
    assert sorted(map(inspect.operator_name, parsed.operatorCodes)) == ["ADD", "RELU"]


def test_the_same_two_give_the_same_bytes_and_stay_as_they_are() -> None:
    first, second = giving(x=("a", (None, 1))), simple(x=("int16", (None, 1), 0.5, 0))
    before = first[:], second[:]
    assert join(first, second) == join(first, second)
    assert (first, second) == before


@pytest.mark.parametrize(("dtype", "version"), [("int8", 1), ("uint8", 1), ("int16", 2)])
def test_a_quantized_input_gets_the_operator_version_that_its_type_needs(dtype: str, version: int) -> None:
    parsed = inspect.parse(join(giving(x=("a", (None, 1))), simple(x=(dtype, (None, 1), 0.5, 0))))
    assert {c.version for c in parsed.operatorCodes if inspect.operator_name(c) == "QUANTIZE"} == {version}


def with_runtime(model: bytes, version: bytes) -> bytes:
    parsed = inspect.parse(model)
    entry, buffer = schema.MetadataT(), schema.BufferT()
    buffer.data = np.frombuffer(version.ljust(16, b"\0"), np.uint8)
    parsed.buffers.append(buffer)
    entry.name, entry.buffer = b"min_runtime_version", len(parsed.buffers) - 1
    parsed.metadata = [entry]
    return bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))


@pytest.mark.parametrize(
    ("front", "back", "dtype", "newest"),
    [
        (b"2.3.0", b"1.14.0", "float32", "2.3.0"),
        (b"1.5.0", b"2.10.0", "float32", "2.10.0"),
        (b"1.5.0", b"1.5.0", "int8", "1.14.0"),
        (b"1.5.0", b"1.5.0", "int16", "1.15.0"),
    ],
)
def test_the_runtime_must_be_new_enough_for_both_and_for_what_joins_them(front: bytes, back: bytes, dtype: str, newest: str) -> None:
    scale = () if dtype == "float32" else (0.5, 0)
    joined = join(with_runtime(giving(x=("a", (None, 1))), front), with_runtime(simple(x=(dtype, (None, 1), *scale)), back))
    assert inspect.minimum_runtime(joined) == newest


def test_weights_behind_the_flatbuffer_are_taken_in() -> None:
    model = simple(x=("float32", (None, 1)))
    parsed = inspect.parse(giving(x=("a", (None, 1))))
    target = next(t for t in parsed.subgraphs[0].tensors if t.name == b"x_shape_tensor")
    data = bytes(parsed.buffers[target.buffer].data)
    parsed.buffers[target.buffer].data = None

    def packed(offset: int) -> bytes:
        parsed.buffers[target.buffer].offset, parsed.buffers[target.buffer].size = offset, len(data)
        return bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))

    first = packed(len(packed(1 << 20))) + data
    runner = Runner(join(first, model))
    np.testing.assert_array_equal(runner({"a": np.float32([[1], [2]])})["x_2"], [[2], [4]])


def stateful() -> bytes:
    x, y = Tensor("a", "float32", (1, 1)), Tensor("x", "float32", (1, 1))
    memory = Tensor("memory", "float32", (1, 1), variable=True)
    return pack([Graph("serving_default", (x,), (y,), (Op("ADD", (x, memory), (y,), schema.AddOptionsT()),))])


def two_signatures() -> bytes:
    graphs = []
    for key in ("one", "two"):
        x = Tensor("x", "float32", (None, 1))
        y, op = relu("y", x)
        graphs.append(Graph(key, (x,), (y,), (op,)))
    return pack(graphs)


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (giving(x=("a", (None, 1))), simple(z=("float32", (None, 1))), ["'z' as float32 [?, 1]", "gives 'x'"]),
        (giving(x=("a", (None, 1))), simple(x=("float32", (None, 2))), ["'x' as float32 [?, 2]", "gives float32 [?, 1]"]),
        (giving(x=("a", (None,))), simple(x=("int8", (None, 1), 0.5, 0)), ["'x' as int8 [?, 1]", "gives float32 [?]"]),
        (giving(x=("a", (None, 1))), simple(x=("int32", (None, 1))), ["'x' as int32 [?, 1]", "gives float32 [?, 1]"]),
        (giving(x=("a", (None, 1))), simple(x=("int8", (None, 1))), ["'x' as int8 [?, 1]", "gives float32 [?, 1]"]),
        (giving(x=("a", (None, 1))), simple(x=("float32", (1, 1))), ["'x' as float32 [1, 1]", "gives float32 [?, 1]"]),
        (stateful(), simple(x=("float32", (1, 1))), ["the preprocessing: memory_tensor keeps"]),
        (giving(x=("a", (None, 1))), two_signatures(), ["the model: has the signatures one, two"]),
        (b"no flatbuffer", simple(x=("float32", (None, 1))), ["not a LiteRT flatbuffer"]),
    ],
)
def test_what_does_not_fit_is_named_from_both_sides(first: bytes, second: bytes, says: list[str]) -> None:
    with pytest.raises(EdgeError) as error:
        join(first, second)
    assert all(text in str(error.value) for text in says), str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda parsed: setattr(parsed.subgraphs[0].operators[0], "opcodeIndex", 77),
        lambda parsed: setattr(parsed.subgraphs[0].operators[0], "inputs", [55, 0]),
        lambda parsed: setattr(parsed.subgraphs[0].tensors[-1], "buffer", 99),
        lambda parsed: setattr(parsed, "operatorCodes", None),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_a_damaged_model_is_an_error_in_one_line(damage: Callable[[Any], None], side: int) -> None:
    models = [giving(x=("a", (None, 1))), simple(x=("float32", (None, 1)))]
    parsed = inspect.parse(models[side])
    damage(parsed)
    models[side] = bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))
    with pytest.raises(EdgeError, match="damaged"):
        join(*models)

"""Predictions of random models on random inputs, against references that share nothing with the runner.

Integer inputs are made with fractions, which round nothing. What a model only hands on is then known without LiteRT; what it
computes is compared with a plain LiteRT loop over the same batches.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

QUANTIZED = ("int8", "uint8", "int16")
SCALES = st.one_of(st.sampled_from([1.0, 0.5, 1 / 256, 0.1, 3.0]), st.floats(2**-20, 2**13, width=32)).map(np.float32).map(float)
SEEDS = st.integers(0, 2**32 - 1)
many = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def quantized_tensors(draw: st.DrawFn, name: str, batch: int | None, width: int, dtypes: tuple[str, ...] = QUANTIZED) -> Tensor:
    dtype = draw(st.sampled_from(dtypes))
    zero_point = 0 if dtype == "int16" else draw(st.integers(np.iinfo(dtype).min, np.iinfo(dtype).max))
    return Tensor(name, dtype, (batch, width), draw(SCALES), zero_point)


@st.composite
def inputs(draw: st.DrawFn, name: str, batch: int | None) -> Tensor:
    width = draw(st.integers(1, 4))
    if draw(st.booleans()):
        return draw(quantized_tensors(name, batch, width))
    return Tensor(name, draw(st.sampled_from(("float32", "int32", "int64", "bool"))), (batch, width))


@st.composite
def graphs(draw: st.DrawFn, signature: str, batch: int | None) -> Graph:
    """Each input is handed on as it is; behind int8 and float32 ones a dense layer computes another output."""
    into = tuple(draw(inputs(f"{signature}_in{i}", batch)) for i in range(draw(st.integers(1, 3))))
    ops, out = [], []
    for i, x in enumerate(into):
        same = Tensor(f"{signature}_same{i}", x.dtype, x.shape, x.scale, x.zero_point)
        shape = Tensor(f"shape{i}", "int32", (2,), value=np.array([-1, x.shape[1]]))
        ops.append(Op("RESHAPE", (x, shape), (same,)))
        out.append(same)
        if x.dtype in ("int8", "float32"):
            y = draw(dense(x, f"{signature}_dense{i}", ops))
            out.append(y)
    return Graph(signature, into, tuple(draw(st.permutations(out))), tuple(ops))


@st.composite
def dense(draw: st.DrawFn, x: Tensor, name: str, ops: list[Op]) -> Tensor:
    rng, units = np.random.default_rng(draw(SEEDS)), draw(st.integers(1, 5))
    if x.dtype == "float32":
        y = Tensor(name, "float32", (x.shape[0], units))
        weights = Tensor("w", "float32", (units, x.shape[1]), value=rng.normal(size=(units, x.shape[1])))
        bias = Tensor("b", "float32", (units,), value=rng.normal(size=units))
    else:
        assert x.scale is not None
        weight_scale = float(np.float32(rng.uniform(1e-3, 0.1)))
        # As wide as the accumulators: LiteRT refuses an output scale that is far from it.
        y = Tensor(name, "int8", (x.shape[0], units), float(np.float32(x.scale * weight_scale * 150)), int(rng.integers(-128, 128)))
        weights = Tensor("w", "int8", (units, x.shape[1]), weight_scale, value=rng.integers(-127, 128, (units, x.shape[1])))
        bias = Tensor("b", "int32", (units,), x.scale * weight_scale, value=rng.integers(-9999, 9999, units))
    ops.append(Op("FULLY_CONNECTED", (x, weights, bias), (y,), schema.FullyConnectedOptionsT()))
    return y


def values(tensor: Tensor, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Feature values for an input: ties between two integers, values in and out of range, infinities."""
    shape = (n, tensor.shape[1] or 1)
    if tensor.dtype == "bool":
        return rng.random(shape) < 0.5
    if tensor.dtype in ("int32", "int64"):
        return rng.integers(np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max, shape, endpoint=True, dtype=np.int64)
    if tensor.scale is None:
        return rng.normal(size=shape).astype(np.float32)
    bounds = np.iinfo(tensor.dtype)
    steps = rng.integers(bounds.min - 9, bounds.max + 9, shape) - tensor.zero_point
    kinds = [
        (steps + 0.5) * tensor.scale,
        np.nextafter(np.float32((steps + 0.5) * tensor.scale), np.float32(np.inf * rng.choice([-1, 1]))),
        rng.uniform(bounds.min * 1.2, bounds.max * 1.2, shape) * tensor.scale,
        rng.choice([np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0], shape),
    ]
    return np.choose(rng.integers(len(kinds), size=shape), kinds).astype(rng.choice([np.float32, np.float64]))


def exact_integers(tensor: Tensor, real: NDArray[Any]) -> NDArray[Any]:
    """What an input must hold, one value at a time, without rounding before the end; Python rounds halves to even."""
    if tensor.scale is None:
        return real.astype(tensor.dtype)
    bounds = np.iinfo(tensor.dtype)

    def one(value: float) -> int:
        if np.isinf(value):
            return int(bounds.max if value > 0 else bounds.min)
        return max(bounds.min, min(bounds.max, round(Fraction(float(value)) / Fraction(tensor.scale)) + tensor.zero_point))

    return np.array([one(v) for v in real.flat], tensor.dtype).reshape(real.shape)


def real_values(tensor: Tensor, held: NDArray[Any]) -> NDArray[Any]:
    if tensor.scale is None:
        return held
    return np.array([np.float32(Fraction(tensor.scale) * (int(v) - tensor.zero_point)) for v in held.flat], np.float32).reshape(held.shape)


def plain_loop(model: bytes, graph: Graph, held: dict[str, NDArray[Any]], n: int, batch: int) -> dict[str, NDArray[Any]]:
    """LiteRT as its documentation runs it, a fresh interpreter for each batch; the last one is filled up with zeros."""
    outputs: dict[str, list[NDArray[Any]]] = {t.name: [] for t in graph.outputs}
    for at in range(0, n, batch):
        run = Interpreter(model_content=model).get_signature_runner(graph.signature)
        chunk = {name: a[at : at + batch] for name, a in held.items()}
        rows = len(next(iter(chunk.values())))
        filled = {name: np.concatenate([a, np.zeros((batch - rows, *a.shape[1:]), a.dtype)]) for name, a in chunk.items()}
        for name, value in run(**filled).items():
            outputs[name].append(value[:rows])
    return {name: np.concatenate(parts) for name, parts in outputs.items()}


@many
@given(st.data())
def test_predictions_equal_those_of_a_plain_loop_over_the_same_batches(data: st.DataObject) -> None:
    batch = data.draw(st.one_of(st.none(), st.integers(1, 4)), "batch")
    several = tuple(data.draw(graphs(f"signature{i}", batch)) for i in range(data.draw(st.integers(1, 3))))
    model = pack(several)
    graph = data.draw(st.sampled_from(several), "graph")
    runner = Runner(model, signature=graph.signature, num_threads=data.draw(st.integers(1, 2)))
    assert runner.batch_size == batch
    for n in data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3), "sizes"):  # one runner, whatever it ran before
        rng = np.random.default_rng(data.draw(SEEDS))
        features = {t.name: values(t, n, rng) for t in graph.inputs}
        held = {t.name: exact_integers(t, features[t.name]) for t in graph.inputs}
        expected = plain_loop(model, graph, held, n, batch or n)
        got = runner({**features, "other": np.zeros(n)})
        assert list(got) == list(dict.fromkeys(t.name for t in graph.outputs)) or set(got) == {t.name for t in graph.outputs}
        for tensor in graph.outputs:
            want = real_values(tensor, expected[tensor.name])
            assert got[tensor.name].dtype == want.dtype
            if tensor.dtype == "float32":
                np.testing.assert_allclose(got[tensor.name], want, rtol=1e-6, atol=0)
            else:
                np.testing.assert_array_equal(got[tensor.name], want)
            if "_same" in tensor.name:  # known without LiteRT
                [source] = [t for t in graph.inputs if t.name == tensor.name.replace("_same", "_in")]
                np.testing.assert_array_equal(got[tensor.name], real_values(source, held[source.name]))


@many
@given(st.data())
def test_an_int8_dense_layer_is_off_its_integer_arithmetic_by_one_step_at_most(data: st.DataObject) -> None:
    """LiteRT's kernels round the last product differently; all before it is exact integer arithmetic, here as Python does it."""
    x = data.draw(quantized_tensors("x", None, data.draw(st.integers(1, 4)), ("int8",)))
    ops: list[Op] = []
    y = data.draw(dense(x, "y", ops))
    _, weights, bias = ops[0].inputs
    assert x.scale and y.scale and weights and bias and weights.scale and weights.value is not None and bias.value is not None
    features = values(x, data.draw(st.integers(1, 9)), np.random.default_rng(data.draw(SEEDS)))
    [got] = Runner(pack([Graph("serving_default", (x,), (y,), tuple(ops))]))({"x": features}).values()
    centred = exact_integers(x, features).astype(np.int64) - x.zero_point
    accumulated = centred @ weights.value.T.astype(np.int64) + bias.value
    steps = np.clip(accumulated * (x.scale * weights.scale / y.scale) + y.zero_point, -128, 127)
    assert np.abs(got.astype(np.float64) / y.scale + y.zero_point - steps).max() <= 1.01


@many
@given(st.data())
def test_values_that_no_input_can_hold_are_an_error(data: st.DataObject) -> None:
    x = data.draw(inputs("x", data.draw(st.one_of(st.none(), st.integers(1, 4)))))
    same = Tensor("y", x.dtype, x.shape, x.scale, x.zero_point)
    ops = (Op("RESHAPE", (x, Tensor("shape", "int32", (2,), value=np.array([-1, x.shape[1]]))), (same,)),)
    runner = Runner(pack([Graph("serving_default", (x,), (same,), ops)]))
    n = data.draw(st.integers(1, 9))
    good = values(x, n, np.random.default_rng(data.draw(SEEDS)))
    spoilt: dict[str, Callable[[], NDArray[Any]]] = {
        "quantized": lambda: np.where(np.arange(good.size).reshape(good.shape) == good.size - 1, np.nan, good),
        "bool": lambda: good + 2,
        "int32": lambda: good + np.int64(2**32),
        "int64": lambda: good.astype(np.float64) + 0.5,
        "float32": lambda: good.astype(np.float64) + 1e300,
    }
    bad = spoilt["quantized" if x.scale is not None else x.dtype]()
    runner({"x": good})
    with pytest.raises(EdgeError, match="feature 'x'"):
        runner({"x": bad})

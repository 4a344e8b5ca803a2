"""Models of several signatures, with variables, loops, text and NaN: what a plain interpreter gets wrong in silence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from flatbuffers import Builder
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.inspect import operators, parse
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, QuantizationConfig

X = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


def times(factor: float, signature: str | None, batch: int | None = None) -> Graph:
    x, y = Tensor("x", "float32", (batch, 4)), Tensor("y", "float32", (batch, 4))
    return Graph(signature, (x,), (y,), (Op("MUL", (x, Tensor("by", "float32", (), value=np.array(factor))), (y,), schema.MulOptionsT()),))


def edited(model: bytes, edit: Callable[[Any], None]) -> bytes:
    parsed = parse(model)
    edit(parsed)
    builder = Builder(1024)
    builder.Finish(parsed.Pack(builder), b"TFL3")
    return bytes(builder.Output())


# Signatures


def test_each_signature_runs_its_own_graph() -> None:
    model = pack([times(2, "double"), times(3, "serving_default"), times(4, "quadruple", batch=2)])
    for signature, factor in (("double", 2), (None, 3), ("serving_default", 3), ("quadruple", 4)):
        runner = Runner(model, signature=signature)
        for n in (7, 1, 3):
            np.testing.assert_array_equal(runner({"x": X[:n]})["y"], X[:n] * np.float32(factor))


@pytest.mark.parametrize(
    ("names", "wanted", "said"),
    [
        (("double", "triple"), None, "has signatures 'double', 'triple'; expected 'serving_default' or a single one, or name one of these"),
        (("double", "serving_default"), "tripel", "no signature 'tripel', it has 'double', 'serving_default'; name one of these"),
        ((None,), None, "has signatures none"),
        ((None,), "double", "no signature 'double', it has none"),
    ],
)
def test_a_signature_that_is_not_there_is_an_error_with_those_that_are(names: tuple[str | None, ...], wanted: Any, said: str) -> None:
    with pytest.raises(EdgeError, match=f"^pushed/7: {said}"):
        Runner(pack([times(2, name) for name in names]), signature=wanted, name="pushed/7")


def of_graph_50(parsed: Any) -> None:
    parsed.signatureDefs[0].subgraphIndex = 50  # LiteRT dies of it


def of_tensor_9(parsed: Any) -> None:
    parsed.signatureDefs[0].inputs[0].tensorIndex = 9


def of_a_constant(parsed: Any) -> None:
    parsed.signatureDefs[0].outputs[0].tensorIndex = 1


def without_inputs(parsed: Any) -> None:
    parsed.signatureDefs[0].inputs, parsed.subgraphs[0].inputs = [], []


def of_operator_9(parsed: Any) -> None:
    parsed.subgraphs[0].operators[0].opcodeIndex = 9


def onto_a_constant(parsed: Any) -> None:
    graph = parsed.subgraphs[0]
    constant = next(tensor.buffer for tensor in graph.tensors if parsed.buffers[tensor.buffer].data is not None)
    graph.tensors[graph.operators[0].outputs[0]].buffer = constant  # LiteRT writes there, and may die of it


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (onto_a_constant, "an operator writes to the constant 'y_tensor'; it is damaged"),
        (of_graph_50, "signature 'double' is of graph 50, the file has 1"),
        (of_tensor_9, "the inputs and outputs of signature 'double' aren't those of its graph"),
        (of_a_constant, "the inputs and outputs of signature 'double' aren't those of its graph"),
        (without_inputs, "signature 'double' has 0 inputs"),
        (of_operator_9, "LiteRT can't load it"),
    ],
)
def test_a_signature_that_does_not_fit_its_graph_is_an_error(damage: Callable[[Any], None], said: str) -> None:
    with pytest.raises(EdgeError, match=said):
        Runner(edited(pack([times(2, "double")]), damage))


def test_tensors_are_observed_in_the_main_graph_alone() -> None:
    model = pack([times(2, "double"), times(3, "triple")])
    seen: list[NDArray[Any]] = []
    Runner(model, signature="double", observe=lambda i: seen.append(i.get_tensor(1)))({"x": X})
    assert len(seen) == 1
    with pytest.raises(EdgeError, match="signature 'triple' isn't the model's main graph"):
        Runner(model, signature="triple", observe=lambda i: None)


# Variables


RNG = np.random.default_rng(1)
WEIGHTS, RECURRENT, BIAS = (RNG.normal(size=s).astype(np.float32) for s in ((3, 2), (3, 3), (3,)))


def recurrent(signature: str) -> Graph:
    """A recurrent layer on `[1, 5, 2]`, whose state is a variable tensor."""
    x, y = Tensor("x", "float32", (1, 5, 2)), Tensor("y", "float32", (1, 5, 3))
    options = schema.SequenceRNNOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    weights = [Tensor(f"w{i}", "float32", a.shape, value=a) for i, a in enumerate((WEIGHTS, RECURRENT, BIAS))]
    state = Tensor("state", "float32", (1, 3), variable=True)
    return Graph(signature, (x,), (y,), (Op("UNIDIRECTIONAL_SEQUENCE_RNN", (x, *weights, state), (y,), options),))


def recurrent_by_hand(x: NDArray[Any]) -> NDArray[Any]:
    state, outputs = np.zeros((len(x), 3)), []
    for step in range(x.shape[1]):
        state = np.tanh(x[:, step] @ WEIGHTS.T + state @ RECURRENT.T + BIAS)
        outputs.append(state)
    return np.stack(outputs, axis=1)


@pytest.mark.parametrize("signatures", [("one",), ("one", "two")])
def test_a_recurrent_layers_state_does_not_pass_from_one_example_to_the_next(signatures: tuple[str, ...]) -> None:
    x = np.random.default_rng(2).normal(size=(6, 5, 2)).astype(np.float32)
    model = pack([recurrent(name) for name in signatures])
    for signature in signatures:
        runner = Runner(model, signature=signature)
        for part in (x, x[::-1], x[3:4]):
            np.testing.assert_allclose(runner({"x": part})["y"], recurrent_by_hand(part), rtol=1e-4, atol=1e-6)


def test_a_variable_that_the_model_assigns_starts_anew_with_each_batch(models: Any) -> None:
    import tensorflow as tf

    calls = tf.Variable(0.0)

    def function(x: tf.Tensor) -> dict[str, tf.Tensor]:
        calls.assign_add(1.0)
        return {"y": x + calls}

    converter = tf.lite.TFLiteConverter.from_saved_model(str(models.save("calls", function, {"x": ([None, 4], "float32")}, calls)))
    converter.experimental_enable_resource_variables = True
    model = converter.convert()
    plain = Interpreter(model_content=model).get_signature_runner()
    assert plain(x=X)["y"][0, 0] != plain(x=X)["y"][0, 0]  # which is what this is about
    runner = Runner(model)
    for part in (X, X[3:], X[:1]):
        np.testing.assert_array_equal(runner({"x": part})["y"], part + 1)


# Control flow and text


def test_loops_and_branches_run(models: Any) -> None:
    import tensorflow as tf

    def function(x: tf.Tensor, limit: tf.Tensor) -> dict[str, tf.Tensor]:
        grown = tf.while_loop(lambda y: tf.reduce_max(y) < tf.reduce_max(limit), lambda y: (y * 2.0,), (tf.abs(x) + 1.0,))[0]
        return {"grown": grown, "branch": tf.cond(tf.reduce_sum(x) > 0, lambda: x * 3.0, lambda: x - 1.0)}

    model = models.flatbuffer(models.save("loops", function, {"x": ([None, 4], "float32"), "limit": ([None, 1], "float32")}))
    assert {"WHILE", "IF"} <= set(operators(model))
    runner = Runner(model)
    for x in (np.abs(X), -np.abs(X[:2])):
        got = runner({"x": x, "limit": np.full((len(x), 1), 50, np.float32)})
        grown = np.abs(x) + 1
        while grown.max() < 50:
            grown *= 2
        np.testing.assert_allclose(got["grown"], grown, rtol=1e-6)
        np.testing.assert_allclose(got["branch"], x * 3 if x.sum() > 0 else x - 1, rtol=1e-6)


TEXT = np.array([[b"oslo", b""], [b"\xff\x00b", "rom\u00e9".encode()], [b"lima", b"x" * 999]], object)


@pytest.mark.parametrize("batch", [None, 2])
def test_text_goes_in_and_comes_out(batch: int | None) -> None:
    a, b = (Tensor(name, "string", (batch, 2)) for name in ("a", "b"))
    same, equal = Tensor("same", "string", (batch, 2)), Tensor("equal", "bool", (batch, 2))
    ops = (Op("RESHAPE", (a, Tensor("shape", "int32", (2,), value=np.array([-1, 2]))), (same,)), Op("EQUAL", (a, b), (equal,)))
    runner = Runner(pack([Graph("serving_default", (a, b), (same, equal), ops)]))
    assert [t.dtype for t in runner.signature.inputs] == ["string", "string"]
    other = TEXT.copy()
    other[1, 1] = b"rome"
    got = runner({"a": TEXT, "b": other})
    np.testing.assert_array_equal(got["same"], TEXT)
    np.testing.assert_array_equal(got["equal"], other == TEXT)
    assert runner({"a": TEXT[:0], "b": TEXT[:0]})["same"].shape == (0, 2)
    for form in (TEXT[::2].astype("S"), TEXT[::2].astype("U")):  # without the one that isn't UTF-8
        np.testing.assert_array_equal(runner({"a": form, "b": TEXT[::2]})["same"], TEXT[::2])
    for bad in (np.array([[b"a", None]], object), np.array([[1, 2]])):
        with pytest.raises(EdgeError, match="feature 'a'.*isn't text, which the model's input takes; feed it bytes"):
            runner({"a": bad, "b": TEXT[:1]})


# Rows and values


@pytest.mark.parametrize("batch", [None, 3])
def test_an_output_without_a_row_for_each_example_is_an_error(batch: int | None) -> None:
    x, y = Tensor("x", "float32", (batch, 4)), Tensor("y", "float32", (1, 4))
    options = schema.ReducerOptionsT()
    options.keepDims = True
    mean = Op("MEAN", (x, Tensor("axis", "int32", (1,), value=np.array([0]))), (y,), options)
    with pytest.raises(EdgeError, match=r"output 'y' has shape \(1, 4\) for 3 examples"):
        Runner(pack([Graph("serving_default", (x,), (y,), (mean,))]))({"x": X[:3]})


def test_a_model_that_draws_at_random_is_refused() -> None:
    x, y = Tensor("x", "int32", (2,)), Tensor("y", "float32", (None, 4))
    draws = Op("RANDOM_UNIFORM", (x,), (y,), schema.RandomOptionsT())
    with pytest.raises(EdgeError, match="RANDOM_UNIFORM draws at random.*export the model for inference"):
        Runner(pack([Graph("serving_default", (x,), (y,), (draws,))]))
    assert Runner(pack([times(2, "serving_default"), Graph("train", (x,), (y,), (draws,))]))({"x": X})["y"].shape == X.shape


@pytest.mark.parametrize("scheme", ["float32", "float16", "dynamic_range", "int8"])
def test_nan_is_refused_where_the_model_would_make_an_integer_of_it(models: Any, scheme: str) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(3)
    kernel, x = rng.normal(size=(64, 40)).astype(np.float32), rng.normal(size=(9, 8, 8)).astype(np.float32)
    path = models.save(f"nan_{scheme}", lambda x: {"y": tf.reshape(x, [-1, 64]) * 0.5 @ kernel}, {"x": ([None, 8, 8], "float32")})
    model = models.flatbuffer(path)
    if scheme != "float32":
        ranges = RangeCollector(model)({"x": x})
        model = apply_plan(model, make_plan(model, QuantizationConfig(scheme=scheme, io_type="float32"), ranges, "digest"), ranges)
    runner = Runner(model)
    x[3, 2, 1] = np.nan
    if scheme.startswith("float"):  # NaN goes in and comes out, in its own row
        np.testing.assert_array_equal(np.isnan(runner({"x": x})["y"]).any(axis=1), np.arange(9) == 3)
    else:
        with pytest.raises(EdgeError, match="feature 'x' holds NaN, which the model quantizes"):
            runner({"x": x})
        runner({"x": np.nan_to_num(x)})


def test_an_input_with_a_scale_for_each_column_is_refused() -> None:
    def edit(parsed: Any) -> None:
        quantization = parsed.subgraphs[0].tensors[0].quantization
        quantization.scale, quantization.zeroPoint, quantization.quantizedDimension = [0.1] * 4, [0] * 4, 1

    x, y = (Tensor(name, "int8", (None, 4), 0.1) for name in "xy")
    model = pack([Graph("serving_default", (x,), (y,), (Op("RESHAPE", (x, Tensor("s", "int32", (2,), value=np.array([-1, 4]))), (y,)),))])
    Runner(model)
    with pytest.raises(EdgeError, match="'x' is quantized with 4 scales"):
        Runner(edited(model, edit))


def test_a_step_can_be_run_again_as_it_is() -> None:
    ran = []
    runner = Runner(pack([times(2, "serving_default")]), observe=lambda i: ran.append(i.get_tensor(2)))
    first = runner({"x": X})["y"]
    runner.repeat()
    np.testing.assert_array_equal(first, X * 2)
    assert len(ran) == 1
    runner._interpreter.set_tensor(runner._interpreter.get_input_details()[0]["index"], X + 1)
    runner.repeat()
    np.testing.assert_array_equal(runner._interpreter.get_tensor(runner._interpreter.get_output_details()[0]["index"]), (X + 1) * 2)


def test_inputs_are_shown_as_the_model_holds_them() -> None:
    x, y = (Tensor(name, "int8", (None, 1), 0.5, 3) for name in "xy")
    ops = (Op("RESHAPE", (x, Tensor("s", "int32", (2,), value=np.array([-1, 1]))), (y,)),)
    raw = Runner(pack([Graph("serving_default", (x,), (y,), ops)])).raw_inputs({"x": np.array([-1.0, 0.0, 0.75, 1e9])})
    np.testing.assert_array_equal(raw["x"], np.int8([[1], [3], [5], [127]]))
    assert raw["x"].dtype == np.int8


def test_an_open_dimension_beside_the_batch_is_named_where_litert_cannot_lay_out_the_graph() -> None:
    x, y = Tensor("x", "float32", (None, None)), Tensor("y", "float32", (None, 2))
    weights = Tensor("w", "float32", (2, 6), value=np.ones((2, 6), np.float32))
    dense = Op("FULLY_CONNECTED", (x, weights, None), (y,), schema.FullyConnectedOptionsT())
    with pytest.raises(EdgeError, match=r"can't load it: .*; its input 'x' is \[None, None\]: give all but the batch a size"):
        Runner(pack([Graph("serving_default", (x,), (y,), (dense,))]))

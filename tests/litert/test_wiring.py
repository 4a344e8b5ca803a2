"""A tensor that is an output and is read as well: each operator gets the form, integers or numbers, that its kernel computes with."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from correctable_models import convolution, model
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import inspect
from tfx_edge.litert.backends.wiring import check_wiring, mend_wiring, outputs
from tfx_edge.litert.packing import pack as repack
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Maker
from tfx_edge.schemas import EdgeError, QuantizationConfig, SchemeRule

RNG = np.random.default_rng(0)
FEATURES = {"x": RNG.normal(size=(200, 8)).astype(np.float32)}


@pytest.fixture(scope="module")
def classifier() -> bytes:
    """Logits, their softmax and their argmax, which LiteRT's quantizers leave in float: three outputs, two made of the first."""
    x, logits = Tensor("x", "float32", (None, 8)), Tensor("logits", "float32", (None, 5))
    probabilities, number = Tensor("probabilities", "float32", (None, 5)), Tensor("number", "int64", (None,))
    kernel = Tensor("w", "float32", (5, 8), value=RNG.normal(size=(5, 8)))
    softmax, arg_max = schema.SoftmaxOptionsT(), schema.ArgMaxOptionsT()
    softmax.beta, arg_max.outputType = 1.0, schema.TensorType.INT64
    ops = (
        Op("FULLY_CONNECTED", (x, kernel, None), (logits,), schema.FullyConnectedOptionsT()),
        Op("ARG_MAX", (logits, Tensor("axis", "int32", (), value=np.array(1))), (number,), arg_max),
        Op("SOFTMAX", (logits,), (probabilities,), softmax),
    )
    return pack([Graph("serving_default", (x,), (logits, probabilities, number), ops)])


def config(scheme: str, io_type: str) -> QuantizationConfig:
    return QuantizationConfig.model_validate({"scheme": scheme, "io_type": io_type})


@pytest.mark.parametrize(("scheme", "io_type"), [("int8", "float32"), ("int8", "int8"), ("int16x8", "float32"), ("int16x8", "int16")])
def test_outputs_made_of_an_output_are_those_of_the_float_model(classifier: bytes, scheme: str, io_type: str) -> None:
    expected = Runner(classifier)(FEATURES)
    got = predictions(classifier, config(scheme, io_type))
    assert set(got) == set(expected)
    for name in ("logits", "probabilities"):
        assert np.abs(got[name] - expected[name]).mean() < 0.05 * expected[name].std()
    assert np.mean(got["number"] == expected["number"]) > 0.95


@pytest.mark.parametrize("io_type", ["float32", "int8"])
def test_a_table_that_is_an_output_and_is_read_is_given_as_it_was_looked_up(io_type: str) -> None:
    """The operator behind it gets a requantized copy, which litert-quantizer takes for the output too."""
    words = Tensor("words", "int32", (None, 6))
    vectors, mean = Tensor("vectors", "float32", (None, 6, 4)), Tensor("mean", "float32", (None, 4))
    table = Tensor("table", "float32", (10, 4), value=RNG.normal(size=(10, 4)))
    axis = Tensor("axis", "int32", (1,), value=np.array([1]))
    ops = (
        Op("GATHER", (table, words), (vectors,), schema.GatherOptionsT()),
        Op("MEAN", (vectors, axis), (mean,), schema.ReducerOptionsT()),
    )
    float_model = pack([Graph("serving_default", (words,), (vectors, mean), ops)])
    features = {"words": RNG.integers(0, 10, (50, 6)).astype(np.int32)}
    ranges = RangeCollector(float_model)(features)
    quantized = Runner(Maker(float_model, ranges)(config("int8", io_type)))
    assert {spec.dtype for spec in quantized.signature.outputs} == {io_type}
    for name, expected in Runner(float_model)(features).items():
        assert np.abs(quantized(features)[name] - expected).mean() < 0.05 * expected.std()


@pytest.mark.parametrize("io_type", ["float32", "int8"])
def test_a_search_makes_the_same_file(classifier: bytes, io_type: str) -> None:
    asked, ranges = config("int8", io_type), RangeCollector(classifier)(FEATURES)
    assert Maker(classifier, ranges)(asked) == apply_plan(classifier, make_plan(classifier, asked, ranges), ranges)


def test_the_outputs_of_the_graph_are_those_of_its_signature(classifier: bytes) -> None:
    """Whoever runs the graph by position, as TensorFlow Lite Micro does, gets what the signature says."""
    ranges = RangeCollector(classifier)(FEATURES)
    parsed = inspect.parse(Maker(classifier, ranges)(config("int8", "int8")))
    assert {int(i) for i in parsed.subgraphs[0].outputs} == {int(o.tensorIndex) for o in parsed.signatureDefs[0].outputs}


def test_a_file_with_nothing_to_mend_stays_as_it_is(classifier: bytes) -> None:
    made = Maker(classifier, RangeCollector(classifier)(FEATURES))(config("int8", "int8"))
    for flatbuffer, io_type in ((classifier, "float32"), (made, "int8")):
        parsed = inspect.parse(flatbuffer)
        mend_wiring(parsed, outputs(classifier), io_type)
        assert repack(parsed) == repack(inspect.parse(flatbuffer))


@pytest.mark.parametrize("kind", ["integer kernel that reads numbers", "float kernel that reads integers"])
def test_an_operator_that_mixes_types_is_refused(classifier: bytes, kind: str) -> None:
    parsed = inspect.parse(Maker(classifier, RangeCollector(classifier)(FEATURES))(config("int8", "float32")))
    graph = parsed.subgraphs[0]
    softmax = by_kind(parsed, "SOFTMAX")
    real = next(int(op.outputs[0]) for op in graph.operators if kind_of(parsed, op) == "DEQUANTIZE" and op.inputs[0] == softmax.inputs[0])
    if kind.startswith("integer"):
        softmax.inputs = [real]
    else:
        graph.tensors[softmax.outputs[0]].type = schema.TensorType.FLOAT32
        graph.tensors[softmax.outputs[0]].quantization = None
    with pytest.raises(EdgeError, match=r"the SOFTMAX that gives 'probabilities_tensor' would read and write .*FLOAT32.*rule"):
        check_wiring(parsed)


@pytest.mark.parametrize(
    "asked",
    [
        QuantizationConfig(scheme="dynamic_range", granularity="tensor"),
        QuantizationConfig(scheme="int4_dynamic_range", granularity="tensor"),
        QuantizationConfig(
            scheme="float32", rules=(SchemeRule(operator="DEPTHWISE_CONV_2D", scheme="dynamic_range", granularity="tensor"),)
        ),
    ],
)
def test_a_depthwise_convolution_on_float_activations_gets_the_scale_a_channel_that_its_kernel_reads(asked: QuantizationConfig) -> None:
    x = Tensor("x", "float32", (None, 6, 6, 8))
    float_model = model(x, convolution("b", x, RNG.normal(size=(1, 3, 3, 8)), RNG.normal(size=8), depthwise=True))
    quantized = apply_plan(float_model, make_plan(float_model, asked))
    images = {"x": RNG.normal(size=(20, 6, 6, 8)).astype(np.float32)}
    expected, got = (next(iter(Runner(each)(images).values())) for each in (float_model, quantized))
    assert np.abs(got - expected).mean() < 0.05 * expected.std()
    weights = [t for t in inspect.parse(quantized).subgraphs[0].tensors if t.type == schema.TensorType.INT8]
    assert [len(t.quantization.scale) for t in weights] == [8]


def test_a_rule_on_a_model_without_operators_is_refused() -> None:
    x = Tensor("x", "float32", (None, 3))
    nothing = pack([Graph("serving_default", (x,), (x,), ())])
    with pytest.raises(EdgeError, match="is about no operator of the model, which has none; "):
        make_plan(nothing, QuantizationConfig(scheme="float16", rules=(SchemeRule(operator="ADD", scheme="float32"),)))


def by_kind(parsed: Any, kind: str) -> Any:
    return next(op for op in parsed.subgraphs[0].operators if kind_of(parsed, op) == kind)


def kind_of(parsed: Any, op: Any) -> str:
    return inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])


def predictions(float_model: bytes, asked: QuantizationConfig) -> dict[str, NDArray[Any]]:
    ranges = RangeCollector(float_model)(FEATURES)
    return Runner(apply_plan(float_model, make_plan(float_model, asked, ranges), ranges))(FEATURES)

"""Corrections: each recovers what plain rounding loses, and changes nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from correctable_models import NONE, RELU, RELU6, convolution, dense, model, outlier_dense, uneven_dense, uneven_depthwise
from numpy.typing import NDArray
from tiny_flatbuffers import Op, Tensor

from tfx_edge.litert import inspect
from tfx_edge.litert.constants import changed_constants, constants, replace_constants
from tfx_edge.litert.corrections import Corrected, apply_constants, correct
from tfx_edge.litert.corrections.equalization import equalize
from tfx_edge.litert.corrections.operators import own_biases, weighted_operators
from tfx_edge.litert.corrections.products import from_matrix, product, row_count, to_matrix, to_rows
from tfx_edge.litert.corrections.quantized import integers
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import AdaRound, BiasCorrection, ConfigError, CrossLayerEqualization, EdgeError, QuantizationConfig, TensorRanges

Features = dict[str, NDArray[Any]]

BIAS, ROUNDING, EQUALIZATION = BiasCorrection(), AdaRound(iterations=400), CrossLayerEqualization()


def positive(seen: int, unseen: int, *shape: int) -> tuple[Features, Features]:
    """Correlated values above zero, as a layer behind ReLU gets them: to correct with, and to judge by."""
    generator = np.random.default_rng(0)
    mixed = np.abs(generator.normal(size=(seen + unseen, *shape))) @ np.abs(generator.normal(size=(shape[-1], shape[-1])))
    values = mixed.astype(np.float32)
    return {"x": values[:seen]}, {"x": values[seen:]}


def collect(examples: Features) -> Callable[[bytes], TensorRanges]:
    return lambda float_model: RangeCollector(float_model)(examples)


def asked(*corrections: Any, scheme: Any = "int8", granularity: Any = "tensor") -> QuantizationConfig:
    return QuantizationConfig(scheme=scheme, granularity=granularity, corrections=corrections)


def quantize(float_model: bytes, config: QuantizationConfig, ranges: TensorRanges) -> bytes:
    plain = config.model_copy(update={"corrections": ()})
    return apply_plan(float_model, make_plan(float_model, plain, ranges), ranges)


def corrected(float_model: bytes, config: QuantizationConfig, examples: Features) -> Corrected:
    return correct(float_model, config, collect(examples), examples, lambda m, r: quantize(m, config, r))


def error(float_model: bytes, candidate: bytes, examples: Features) -> float:
    """Mean squared error of the outputs over their variance."""
    [expected], [got] = Runner(float_model)(examples).values(), Runner(candidate)(examples).values()
    return float(((got - expected) ** 2).mean() / expected.var())


def gain(float_model: bytes, config: QuantizationConfig, learned: dict[str, Any], unseen: dict[str, Any]) -> float:
    """Error of plain quantization over that of the corrected model, on examples that the correction didn't see."""
    plain = quantize(float_model, config, collect(learned)(float_model))
    result = corrected(float_model, config, learned)
    return error(float_model, plain, unseen) / error(float_model, quantize(result.float_model, config, result.ranges), unseen)


DENSE, IMAGES, WIDE = positive(300, 300, 8), positive(80, 60, 6, 6, 4), positive(400, 400, 24)


@pytest.mark.parametrize(
    ("float_model", "correction", "data", "least"),
    [
        pytest.param(uneven_dense(), EQUALIZATION, DENSE, 100, id="dense-equalization"),
        pytest.param(uneven_depthwise(), EQUALIZATION, IMAGES, 100, id="depthwise-equalization"),
        pytest.param(uneven_dense(), BIAS, DENSE, 2.5, id="dense-bias"),
        pytest.param(uneven_depthwise(), BIAS, IMAGES, 1.5, id="depthwise-bias"),
        pytest.param(outlier_dense(), BIAS, WIDE, 8, id="outlier-bias"),
        pytest.param(outlier_dense(), ROUNDING, WIDE, 4, id="outlier-rounding"),
    ],
)
def test_a_correction_recovers_what_plain_int8_loses(
    float_model: bytes, correction: Any, data: tuple[Features, Features], least: float
) -> None:
    assert gain(float_model, asked(correction), *data) > least


@pytest.mark.parametrize("scheme", ["dynamic_range", "int8_weights", "int16x8"])
def test_corrections_together_recover_it_in_each_scheme_with_integer_weights(scheme: str) -> None:
    assert gain(uneven_dense(), asked(EQUALIZATION, ROUNDING, BIAS, scheme=scheme), *DENSE) > 100


@pytest.mark.parametrize("corrections", [(EQUALIZATION,), (BIAS,), (ROUNDING,), (EQUALIZATION, ROUNDING, BIAS)])
def test_the_constants_alone_give_the_same_bytes_again(corrections: tuple[Any, ...]) -> None:
    first, second = (corrected(uneven_depthwise(), asked(*corrections), IMAGES[0]) for _ in range(2))
    assert first.float_model == second.float_model == apply_constants(uneven_depthwise(), first.constants)
    assert first.constants and first.report == second.report


def test_without_corrections_the_model_stays_as_it_is() -> None:
    result = corrected(uneven_dense(), asked(), DENSE[0])
    assert (result.float_model, result.constants, result.report) == (uneven_dense(), {}, ())


@pytest.mark.parametrize(("float_model", "data"), [(uneven_dense(), DENSE), (uneven_depthwise(), IMAGES)])
def test_an_equalized_model_computes_what_it_did(float_model: bytes, data: tuple[Features, Features]) -> None:
    equalized, report = equalize(float_model, EQUALIZATION)
    [expected], [got] = Runner(float_model)(data[0]).values(), Runner(equalized)(data[0]).values()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))
    done = [layer for layer in report if layer.skipped is None]
    assert done and all(layer.before is not None and layer.after is not None and layer.after > 10 * layer.before for layer in done)


def test_both_layers_have_the_same_range_in_each_channel_afterwards() -> None:
    equalized, _ = equalize(uneven_dense(), EQUALIZATION)
    first, second = (constants(equalized)[op.weights] for op in weighted_operators(inspect.parse(equalized))[0])
    np.testing.assert_allclose(np.abs(first).max(axis=1), np.abs(second).max(axis=0), rtol=1e-3)


def test_channels_are_followed_through_pooling_and_flattening() -> None:
    generator = np.random.default_rng(4)
    factors = np.logspace(-1, 1, 5)
    x = Tensor("x", "float32", (None, 4, 4, 2))
    a = convolution("a", x, generator.normal(size=(5, 3, 3, 2)) * factors[:, None, None, None], np.zeros(5), RELU)
    pooling = schema.Pool2DOptionsT()
    pooling.strideW = pooling.strideH = pooling.filterWidth = pooling.filterHeight = 2
    pooling.padding, pooling.fusedActivationFunction = schema.Padding.VALID, NONE
    pooled, flat = Tensor("pooled", "float32", (None, 2, 2, 5)), Tensor("flat", "float32", (None, 20))
    shape = Tensor("shape", "int32", (2,), value=np.array([-1, 20], np.int32))
    float_model = model(
        x,
        a,
        Op("MAX_POOL_2D", a.outputs, (pooled,), pooling),
        Op("RESHAPE", (pooled, shape), (flat,), schema.ReshapeOptionsT()),
        dense("b", flat, generator.normal(size=(3, 20)), None),
    )
    images = {"x": generator.normal(size=(8, 4, 4, 2)).astype(np.float32)}
    equalized, report = equalize(float_model, EQUALIZATION)
    [expected], [got] = Runner(float_model)(images).values(), Runner(equalized)(images).values()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))
    assert [layer.tensor for layer in report if layer.skipped is None] == ["a_tensor"]
    # The two layers' weights; zeros as a bias stay zeros.
    assert len(changed_constants(own_biases(float_model), equalized)) == 2


def test_relu6_isnt_equalized_and_the_report_says_why() -> None:
    _, report = equalize(uneven_dense(RELU6), EQUALIZATION)
    assert {layer.tensor: layer.skipped for layer in report} == {
        "a_tensor": "its fused activation isn't positively homogeneous, as RELU6 isn't: scaling its input doesn't scale its output",
        "b_tensor": "its output is the model's",
    }


def test_a_layer_that_two_read_isnt_equalized() -> None:
    x = Tensor("x", "float32", (None, 4))
    a = dense("a", x, np.eye(4), np.zeros(4), RELU)
    b, c = (dense(name, a.outputs[0], np.eye(4), np.zeros(4)) for name in "bc")
    total = Tensor("total", "float32", (None, 4))
    _, report = equalize(model(x, a, b, c, Op("ADD", (b.outputs[0], c.outputs[0]), (total,), schema.AddOptionsT())), EQUALIZATION)
    assert {layer.tensor: layer.skipped for layer in report} == {
        "a_tensor": "its output has 2 readers, not one",
        "b_tensor": "ADD behind it doesn't pass a positive factor a channel on",
        "c_tensor": "ADD behind it doesn't pass a positive factor a channel on",
    }


def test_bias_correction_changes_biases_alone_and_brings_the_means_back() -> None:
    result = corrected(uneven_depthwise(), asked(BIAS), IMAGES[0])
    biases = {op.bias for op in weighted_operators(inspect.parse(uneven_depthwise()))[0]}
    assert result.constants.keys() == biases
    for layer in result.report:
        assert layer.before is not None and layer.after is not None and layer.after < 0.05 * layer.before
    config = asked(BIAS)
    [expected] = Runner(uneven_depthwise())(IMAGES[0]).values()
    plain, better = (
        np.abs((next(iter(Runner(quantize(m, config, result.ranges))(IMAGES[0]).values())) - expected).mean(axis=(0, 1, 2)))
        for m in (uneven_depthwise(), result.float_model)
    )
    assert (better < 0.2 * plain).all()


def test_learned_rounding_moves_a_weight_by_one_integer_at_most_and_leaves_the_scale() -> None:
    float_model = outlier_dense()
    [op] = weighted_operators(inspect.parse(float_model))[0]
    pruned = constants(float_model)[op.weights].copy()
    pruned[:, ::3] = 0
    pruned[0, 0] = 12
    float_model = replace_constants(float_model, {op.weights: pruned})
    result = corrected(float_model, asked(ROUNDING), WIDE[0])
    [learned, nearest] = (
        integers(inspect.parse(q), weighted_operators(inspect.parse(q))[0][0].weights)
        for q in (quantize(m, asked(ROUNDING), result.ranges) for m in (result.float_model, float_model))
    )
    assert learned is not None and nearest is not None
    np.testing.assert_array_equal(learned.scale, nearest.scale)
    real = pruned / nearest.scale
    assert (np.abs(learned.values - real) < 1).all()
    assert (learned.values[pruned == 0] == 0).all() and learned.values[0, 0] == 127
    moved = learned.values != nearest.values
    assert moved.any()
    assert result.constants.keys() == {op.weights}
    np.testing.assert_array_equal(result.constants[op.weights][~moved], pruned[~moved])


def test_clustered_weights_keep_their_shared_values() -> None:
    generator = np.random.default_rng(6)
    x = Tensor("x", "float32", (None, 24))
    float_model = model(x, dense("a", x, generator.choice([-1, -0.3, 0.2, 0.71], size=(10, 24)), np.zeros(10)))
    result = corrected(float_model, asked(ROUNDING), WIDE[0])
    assert [layer.skipped for layer in result.report] == ["its weights share values (clustering), which learned rounding would part"]
    assert result.constants == {}


@pytest.mark.parametrize(("stride", "dilation"), [((1, 1), (1, 1)), ((2, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 1))])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("kind", ["dense", "convolution", "grouped", "depthwise"])
def test_products_of_matrices_are_what_litert_computes(kind: str, stride: tuple[int, int], dilation: tuple[int, int], padding: str) -> None:
    generator = np.random.default_rng(7)
    shape = {"dense": (5, 6), "convolution": (5, 3, 2, 6), "grouped": (4, 3, 2, 3), "depthwise": (1, 3, 2, 12)}[kind]
    weights = generator.normal(size=shape).astype(np.float32)
    bias = generator.normal(size=shape[3] if kind == "depthwise" else shape[0]).astype(np.float32)
    x = Tensor("x", "float32", (None, 6) if kind == "dense" else (None, 7, 8, 6))
    if kind == "dense":
        layer = dense("y", x, weights, bias)
    else:
        layer = convolution("y", x, weights, bias, NONE, stride=stride, dilation=dilation, padding=padding, depthwise=kind == "depthwise")
    float_model = model(x, layer)
    values = generator.normal(size=(3, *(d or 1 for d in x.shape[1:]))).astype(np.float32)
    [op] = weighted_operators(inspect.parse(float_model))[0]
    rows, matrix = to_rows(op, values, shape), to_matrix(op, weights, 6)
    np.testing.assert_array_equal(from_matrix(op, matrix, shape), weights)
    assert rows.shape[1] == row_count(op, values, shape)
    picked = np.array([0, rows.shape[1] - 1])
    np.testing.assert_array_equal(to_rows(op, values, shape, picked), rows[:, picked])
    got = product(rows, matrix).transpose(1, 0, 2).reshape(rows.shape[1], -1) + bias
    [expected] = Runner(float_model)({"x": values}).values()
    np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=1e-4, atol=1e-4)


def test_each_layer_gets_a_bias_of_its_own_and_computes_what_it_did() -> None:
    x = Tensor("x", "float32", (None, 4))
    generator = np.random.default_rng(8)
    a, b, c = (generator.normal(size=(4, 4)) for _ in range(3))
    first = dense("a", x, a, np.arange(4.0))
    shared = first.inputs[2]
    second = dense("b", first.outputs[0], b, None)
    third = dense("c", second.outputs[0], c, None)
    third = Op(third.kind, (*third.inputs[:2], shared), third.outputs, third.options)
    float_model = model(x, first, second, third)
    own = own_biases(float_model)
    biases = [op.bias for op in weighted_operators(inspect.parse(own))[0]]
    assert None not in biases and len(set(biases)) == 3
    [expected], [got] = Runner(float_model)({"x": WIDE[0]["x"][:, :4]}).values(), Runner(own)({"x": WIDE[0]["x"][:, :4]}).values()
    np.testing.assert_array_equal(got, expected)
    assert own_biases(own) == own


def test_no_examples_is_an_error_that_says_so() -> None:
    with pytest.raises(EdgeError, match="no examples; give calibration data with at least one"):
        correct(uneven_dense(), asked(BIAS), collect(DENSE[0]), {"x": DENSE[0]["x"][:0]}, lambda m, r: quantize(m, asked(BIAS), r))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"corrections": (BIAS, EQUALIZATION)},
            "each stands once at most, in the order cross_layer_equalization, ada_round, bias_correction",
        ),
        ({"corrections": (BIAS, BIAS)}, "each stands once at most"),
        ({"corrections": (BIAS,), "scheme": "float16"}, "scheme float16; they are for schemes that make weights integers"),
    ],
)
def test_corrections_that_dont_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        QuantizationConfig(**fields)


def test_a_config_with_corrections_survives_json() -> None:
    config = asked(EQUALIZATION, ROUNDING, BIAS)
    assert QuantizationConfig.from_json(config.to_json()) == config

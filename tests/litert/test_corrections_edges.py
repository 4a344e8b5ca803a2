"""Corrections where they are rare: graphs whose tensors lie otherwise than most, and 4-bit weights."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from correctable_models import NONE, RELU, convolution, dense, model
from numpy.typing import NDArray
from tiny_flatbuffers import Op, Tensor

from tfx_edge.litert.corrections import Corrected, correct
from tfx_edge.litert.corrections.equalization import equalize
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search.making import Maker
from tfx_edge.schemas import AdaRound, BiasCorrection, CrossLayerEqualization, QuantizationConfig

Features = dict[str, NDArray[Any]]
EQUALIZATION = CrossLayerEqualization()


def values(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


def constant(name: str, value: NDArray[Any]) -> Tensor:
    return Tensor(name, value.dtype.name, value.shape, value=value)


def equalized_layers(float_model: bytes, examples: Features) -> dict[str, str | None]:
    """Why each layer was left as it is, having checked that the model computes what it did."""
    equalized, report = equalize(float_model, EQUALIZATION)
    [expected], [got] = Runner(float_model)(examples).values(), Runner(equalized)(examples).values()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))
    return {layer.tensor: layer.skipped for layer in report}


def corrected(float_model: bytes, config: QuantizationConfig, examples: Features) -> Corrected:
    return correct(float_model, config, lambda m: RangeCollector(m)(examples), examples, lambda m, ranges: Maker(m, ranges)(config))


def error(float_model: bytes, config: QuantizationConfig, examples: Features) -> float:
    """Mean squared error of the quantized model's output over its variance."""
    result = corrected(float_model, config, examples)
    quantized = Maker(result.float_model, result.ranges)(config)
    [expected], [got] = Runner(float_model)(examples).values(), Runner(quantized)(examples).values()
    return float(((got - expected) ** 2).mean() / expected.var())


def uneven_convolution(x: Tensor) -> Op:
    return convolution("a", x, values(3, 1, 1, 2) * np.float32([1, 100, 0.01])[:, None, None, None], values(3), RELU)


def test_a_depthwise_layer_behind_folded_channels_isnt_equalized() -> None:
    x, flat = Tensor("x", "float32", (None, 4, 4, 2)), Tensor("flat", "float32", (None, 4, 1, 12))
    a = uneven_convolution(x)
    fold = Op("RESHAPE", (a.outputs[0], constant("shape", np.array([-1, 4, 1, 12], np.int32))), (flat,), schema.ReshapeOptionsT())
    b = convolution("b", flat, values(1, 3, 1, 12), values(12), NONE, depthwise=True)
    left = equalized_layers(model(x, a, fold, b), {"x": values(8, 4, 4, 2)})
    assert left["a_tensor"] == "'b_tensor' doesn't read its channels one by one"


def test_a_dense_layer_that_flattens_images_itself_is_equalized() -> None:
    x = Tensor("x", "float32", (None, 4, 4, 2))
    a = uneven_convolution(x)
    output = Tensor("b", "float32", (None, 5))
    b = Op("FULLY_CONNECTED", (a.outputs[0], constant("w", values(5, 48)), None), (output,), schema.FullyConnectedOptionsT())
    assert equalized_layers(model(x, a, b), {"x": values(8, 4, 4, 2)})["a_tensor"] is None


def test_a_layer_with_a_computed_bias_isnt_equalized() -> None:
    x, bias = Tensor("x", "float32", (None, 4)), Tensor("bias", "float32", (4,))
    add = Op("ADD", (constant("p", np.ones(4, np.float32)), constant("q", np.arange(4, dtype=np.float32))), (bias,), schema.AddOptionsT())
    a = dense("a", x, np.diag([1, 100, 0.01, 3.0]), None, RELU)
    a = Op(a.kind, (*a.inputs[:2], bias), a.outputs, a.options)
    float_model = model(x, add, a, dense("b", a.outputs[0], values(3, 4), None))
    assert equalized_layers(float_model, {"x": values(8, 4)})["a_tensor"] == "its bias is computed"


@pytest.mark.parametrize("weight", [1e-2, 1e-4, 1e-8, 0])
def test_equalization_leaves_channels_that_give_little_but_their_bias_in_proportion(weight: float) -> None:
    x = Tensor("x", "float32", (None, 8))
    kernel, bias = values(16, 8), 0.3 * values(16)
    kernel[:3] *= weight
    bias[:3] = 0.5
    a = dense("a", x, kernel, bias, RELU)
    float_model, examples = model(x, a, dense("b", a.outputs[0], values(4, 16)[:, ::-1], np.zeros(4))), {"x": values(300, 8)}
    equalized = error(float_model, QuantizationConfig(corrections=(EQUALIZATION,)), examples)
    assert equalized < 1.5 * error(float_model, QuantizationConfig(), examples)


def test_a_layer_whose_input_has_the_batch_on_another_axis_is_corrected() -> None:
    x, y = Tensor("x", "float32", (None, 5, 6)), Tensor("y", "float32", (None, 5, 4))
    turned, product = Tensor("turned", "float32", (5, None, 6)), Tensor("product", "float32", (5, None, 4))
    turn = constant("turn", np.array([1, 0, 2], np.int32))
    options = schema.FullyConnectedOptionsT()
    options.keepNumDims = True
    float_model = model(
        x,
        Op("TRANSPOSE", (x, turn), (turned,), schema.TransposeOptionsT()),
        Op("FULLY_CONNECTED", (turned, constant("w", values(4, 6)), constant("b", values(4))), (product,), options),
        Op("TRANSPOSE", (product, turn), (y,), schema.TransposeOptionsT()),
    )
    config = QuantizationConfig(corrections=(AdaRound(iterations=20), BiasCorrection()))
    [_, bias] = corrected(float_model, config, {"x": np.abs(values(48, 5, 6))}).report  # 48 examples run as 32 and 16
    assert bias.before is not None and bias.after is not None and bias.after < 0.3 * bias.before


def test_learned_rounding_and_bias_correction_recover_most_of_what_four_bits_lose() -> None:
    x = Tensor("x", "float32", (None, 24))
    a = dense("a", x, values(32, 24), values(32), RELU)
    float_model = model(x, a, dense("b", a.outputs[0], values(10, 32), np.zeros(10)))
    examples = {"x": np.abs(values(400, 24))}
    plain, rounded, shifted = (
        error(float_model, QuantizationConfig(scheme="int4_weights", corrections=corrections), examples)
        for corrections in ((), (AdaRound(iterations=300),), (BiasCorrection(),))
    )
    assert rounded < plain / 3 and shifted < plain / 3


def test_weights_with_a_scale_a_block_are_left_as_they_are_and_the_report_says_why() -> None:
    x = Tensor("x", "float32", (None, 32))
    float_model, examples = model(x, dense("a", x, values(8, 32), values(8))), {"x": np.abs(values(40, 32))}
    config = QuantizationConfig(
        scheme="int4_dynamic_range", granularity="block_32", corrections=(AdaRound(iterations=2), BiasCorrection(examples=8))
    )
    result = corrected(float_model, config, examples)
    assert result.constants == {} and [layer.skipped for layer in result.report] == [
        "it stays float, or its weights have scales a block",
        "it stays float, or its weights have no scales that can be read",
    ]


def test_learned_rounding_holds_for_weights_halfway_between_two_integers() -> None:
    x = Tensor("x", "float32", (None, 127))
    halfway = ((np.arange(127) + 0.5) / 127).astype(np.float32)  # the last stays below the 1 that sets the scale
    kernel = np.stack([np.nextafter(halfway, np.float32(to)) for to in (-1, 1)] + [halfway])
    kernel[:, -1] = 1
    float_model, examples = model(x, dense("a", x, kernel, np.zeros(3))), {"x": np.abs(values(80, 127))}
    [layer] = corrected(float_model, QuantizationConfig(corrections=(AdaRound(iterations=50),)), examples).report
    assert layer.skipped is None

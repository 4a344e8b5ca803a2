"""Layer errors: the table names the operator that was damaged."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import Builder

from tfx_edge.litert import inspect
from tfx_edge.litert.layer_errors import layer_errors
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector, activations
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, QuantizationConfig, TensorRange, TensorRanges

Features = dict[str, Any]
CONVOLUTIONS = 4


@pytest.fixture(scope="module")
def convnet(models: Any) -> bytes:
    """Four convolutions with ReLU and a classifier on images `[n, 8, 8, 1]`."""
    import tf_keras as keras

    keras.utils.set_random_seed(6)
    image = x = keras.Input((8, 8, 1), name="image")
    for _ in range(CONVOLUTIONS):
        x = keras.layers.Conv2D(8, 3, padding="same", activation="relu", bias_initializer="random_normal")(x)
    model = keras.Model(image, keras.layers.Dense(10, activation="softmax")(keras.layers.GlobalAveragePooling2D()(x)))
    return models.flatbuffer(models.save("convnet", lambda image: {"digit": model(image)}, {"image": ([None, 8, 8, 1], "float32")}, model))


@pytest.fixture(scope="module")
def ranges(convnet: bytes, images: Features) -> TensorRanges:
    return RangeCollector(convnet)(images)


@pytest.fixture(scope="module")
def int8(convnet: bytes, ranges: TensorRanges) -> bytes:
    return quantized(convnet, ranges)


def quantized(model: bytes, ranges: TensorRanges) -> bytes:
    return apply_plan(model, make_plan(model, QuantizationConfig(scheme="int8"), ranges), ranges)


def changed(model: bytes, change: Callable[[Any], None]) -> bytes:
    parsed = inspect.parse(model)
    change(parsed)
    builder = Builder(0)
    builder.Finish(parsed.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def convolution_outputs(model: bytes) -> list[str]:
    parsed = inspect.parse(model)
    graph = parsed.subgraphs[0]
    ops = [op for op in graph.operators if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) == "CONV_2D"]
    return [graph.tensors[op.outputs[0]].name.decode() for op in ops]


def test_a_quantized_model_has_a_row_for_each_operator_in_order_and_none_that_stands_out(
    convnet: bytes, int8: bytes, images: Features
) -> None:
    errors = layer_errors(convnet, int8, images)
    assert [layer.op for layer in errors.layers] == [*["CONV_2D"] * CONVOLUTIONS, "MEAN", "FULLY_CONNECTED", "SOFTMAX"]
    assert errors.skipped == 0 and errors.examples == 67
    for layer in errors.layers:
        assert layer.sqnr_db is not None and layer.sqnr_db > 25
        assert layer.loss_db < 10
        assert 0 < layer.mean_abs_error <= layer.worst_abs_error


@pytest.mark.parametrize("at", range(CONVOLUTIONS))
@pytest.mark.parametrize("factor", [40.0, 0.02])
def test_the_operator_whose_range_was_wrong_comes_first(
    convnet: bytes, ranges: TensorRanges, images: Features, at: int, factor: float
) -> None:
    """Far too wide a range rounds everything to a few values, far too narrow a one cuts everything off."""
    name = convolution_outputs(convnet)[at]
    wrong = TensorRange(min=ranges.ranges[name].min * factor, max=ranges.ranges[name].max * factor)
    damaged = quantized(convnet, TensorRanges(ranges={**ranges.ranges, name: wrong}, examples=ranges.examples))
    assert layer_errors(convnet, damaged, images).worst[0].tensor == name


@pytest.mark.parametrize("at", range(CONVOLUTIONS))
def test_the_operator_whose_weights_were_damaged_comes_first(convnet: bytes, int8: bytes, images: Features, at: int) -> None:
    def negate(parsed: Any) -> None:
        graph = parsed.subgraphs[0]
        code = next(i for i, c in enumerate(parsed.operatorCodes) if c.builtinCode == schema.BuiltinOperator.CONV_2D)
        op = [op for op in graph.operators if op.opcodeIndex == code][at]
        weights = parsed.buffers[graph.tensors[op.inputs[1]].buffer]
        weights.data = (-(weights.data.view(np.int8) // 2)).view(np.uint8)

    worst = layer_errors(convnet, changed(int8, negate), images).worst[0]
    assert worst.tensor == convolution_outputs(convnet)[at]
    assert worst.op == "CONV_2D"


def test_the_errors_of_the_output_are_those_between_the_two_models_predictions(convnet: bytes, int8: bytes) -> None:
    images = {"image": np.random.default_rng(3).random((64, 8, 8, 1)).astype(np.float32)}  # two whole batches
    expected, found = (Runner(m)(images)["digit"].astype(np.float64) for m in (convnet, int8))
    last = layer_errors(convnet, int8, images).layers[-1]
    error = np.abs(found - expected)
    np.testing.assert_allclose([last.mean_abs_error, last.worst_abs_error], [error.mean(), error.max()], rtol=1e-4)
    assert last.sqnr_db == pytest.approx(10 * np.log10((expected**2).sum() / (error**2).sum()), abs=1e-3)


def test_a_model_against_itself_loses_nothing(convnet: bytes, images: Features) -> None:
    for layer in layer_errors(convnet, convnet, images).layers:
        assert (layer.sqnr_db, layer.mean_abs_error, layer.worst_abs_error, layer.loss_db) == (None, 0, 0, 0)


def test_an_output_that_only_one_model_has_is_counted_and_the_loss_passes_through_it(
    convnet: bytes, ranges: TensorRanges, images: Features
) -> None:
    first, renamed, third, _ = convolution_outputs(convnet)

    def rename(parsed: Any) -> None:
        tensor = next(t for t in parsed.subgraphs[0].tensors if t.name.decode() == renamed)
        tensor.name = b"other"

    coarse = TensorRanges(ranges={**ranges.ranges, first: TensorRange(min=0, max=100 * ranges.ranges[first].max)}, examples=1)
    errors = layer_errors(convnet, changed(quantized(convnet, coarse), rename), images)
    assert errors.skipped == 2  # the one that the float model has, and the one that the candidate has
    loss = {layer.tensor: layer.loss_db for layer in errors.layers}
    assert len(loss) == len(activations(convnet)) - 2 and renamed not in loss  # nor is the input an operator's output
    assert loss[third] < loss[first] / 2


def test_a_fixed_batch_is_compared_with_a_free_one(image_model: bytes, fixed_image_model: bytes, images: Features) -> None:
    errors = layer_errors(image_model, fixed_image_model, images)
    assert errors.layers and all(layer.worst_abs_error < 1e-5 for layer in errors.layers)


def test_no_examples_is_an_error(convnet: bytes, int8: bytes) -> None:
    with pytest.raises(EdgeError, match="no examples; give at least one"):
        layer_errors(convnet, int8, {"image": np.zeros((0, 8, 8, 1), np.float32)})

"""What each operator costs and what became of each layer, on flatbuffers built by hand and on converted Keras models."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from recurrent_flatbuffers import FEATURES, STEPS, UNITS, loop, lstm
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert import constants, inspect
from tfx_edge.litert.operator_report import operator_report, unfused_blocks
from tfx_edge.schemas import EdgeError, OperatorCost, OperatorsReport, SourceLayer

RNG = np.random.default_rng(0)


def weights(name: str, *shape: int) -> Tensor:
    return Tensor(name, "float32", shape, value=RNG.normal(size=shape))


def one_operator(kind: str, inputs: tuple[Tensor | None, ...], output: Tensor, options: Any = None) -> OperatorCost:
    given = tuple(t for t in inputs if t is not None and t.value is None)
    [cost] = operator_report(pack([Graph("serving_default", given, (output,), (Op(kind, inputs, (output,), options),))])).operators
    return cost


def multiplications(output: Any, reads: int) -> int:
    """Counted the long way: so many for each output element."""
    return sum(reads for _ in np.ndindex(*output))


def test_a_convolution_multiplies_one_filter_at_each_place() -> None:
    image, kernel, bias = Tensor("x", "float32", (None, 8, 8, 2)), weights("w", 4, 3, 3, 2), weights("b", 4)
    cost = one_operator("CONV_2D", (image, kernel, bias), Tensor("y", "float32", (None, 6, 6, 4)), schema.Conv2DOptionsT())
    assert cost.macs == multiplications((6, 6, 4), 3 * 3 * 2)
    assert (cost.parameters, cost.constant_bytes) == (4 * 3 * 3 * 2 + 4, 4 * (4 * 3 * 3 * 2 + 4))
    assert (cost.shape, cost.dtype, cost.computes_in, cost.activation) == ((-1, 6, 6, 4), "float32", "float32", None)


def test_a_depthwise_convolution_multiplies_one_channels_window() -> None:
    image, kernel = Tensor("x", "float32", (None, 8, 8, 2)), weights("w", 1, 3, 3, 6)
    assert one_operator("DEPTHWISE_CONV_2D", (image, kernel), Tensor("y", "float32", (None, 6, 6, 6))).macs == multiplications((6, 6, 6), 9)


def test_a_transposed_convolution_puts_its_kernel_on_each_place_of_its_input() -> None:
    shape = Tensor("shape", "int32", (4,), value=np.array([1, 10, 12, 4]))
    inputs = (shape, weights("w", 4, 3, 3, 2), Tensor("x", "float32", (None, 5, 6, 2)))
    cost = one_operator("TRANSPOSE_CONV", inputs, Tensor("y", "float32", (None, 10, 12, 4)))
    assert cost.macs == multiplications((5, 6), 3 * 3 * 2 * 4)
    assert (cost.parameters, cost.constant_bytes) == (4 * 3 * 3 * 2, 4 * 4 * 3 * 3 * 2 + 4 * 4)  # the shape is a constant, no parameter


@pytest.mark.parametrize("adjoint", [False, True])
def test_a_matrix_product_counts_its_inner_dimension(adjoint: bool) -> None:
    options = schema.BatchMatMulOptionsT()
    options.adjX = adjoint
    left = Tensor("a", "float32", (None, 2, 7, 5) if adjoint else (None, 2, 5, 7))
    right = Tensor("b", "float32", (None, 2, 7, 3))
    cost = one_operator("BATCH_MATMUL", (left, right), Tensor("y", "float32", (None, 2, 5, 3)), options)
    assert cost.macs == multiplications((2, 5, 3), 7)


def test_an_lstm_multiplies_all_its_matrices_in_each_step() -> None:
    report = operator_report(lstm())
    recurrent = report.operators[0]
    assert recurrent.kind == "UNIDIRECTIONAL_SEQUENCE_LSTM"
    assert recurrent.macs == STEPS * 4 * UNITS * (FEATURES + UNITS)
    assert recurrent.parameters == 4 * UNITS * (FEATURES + UNITS + 1)  # its variables are none


def test_a_fixed_batch_counts_for_one_example() -> None:
    kernel = weights("w", 3, 5)
    for batch in (1, 4, None):
        cost = one_operator("FULLY_CONNECTED", (Tensor("x", "float32", (batch, 5)), kernel), Tensor("y", "float32", (batch, 3)))
        assert cost.macs == 15


def flattened(steps: int) -> bytes:
    """A dense layer on `[n, steps, 5]`, flattened to `[n * steps, 5]`, whose sizes the file leaves open."""
    x, y = Tensor("x", "float32", (None, steps, 5)), Tensor("y", "float32", (None, steps, 3))
    rows, hidden = Tensor("rows", "float32", (None, 5)), Tensor("hidden", "float32", (None, 3))
    added = Tensor("added", "float32", (None, 3))
    shape = Tensor("shape", "int32", (2,), value=np.array([-1, 5]))
    back = Tensor("back", "int32", (3,), value=np.array([-1, steps, 3]))
    again, last = weights("v", 3, 3), Tensor("last", "float32", (None, 3))
    ops = (
        Op("RESHAPE", (x, shape), (rows,)),
        Op("FULLY_CONNECTED", (rows, weights("w", 3, 5)), (hidden,)),
        Op("ADD", (hidden, weights("b", 3)), (added,)),
        Op("FULLY_CONNECTED", (added, again), (last,)),
        Op("RESHAPE", (last, back), (y,)),
    )
    return pack([Graph("serving_default", (x,), (y,), ops)])


def test_open_sizes_are_followed_through_a_flattened_dense_layer() -> None:
    for steps in (1, 7):
        assert [op.macs for op in operator_report(flattened(steps)).operators] == [0, steps * 15, 0, steps * 9, 0]


def test_the_larger_batch_inside_of_a_dilated_convolution_is_counted() -> None:
    x, y = Tensor("x", "float32", (None, 8, 8, 3)), Tensor("y", "float32", (None, 4, 4, 5))
    wide, hidden = Tensor("wide", "float32", (None, 4, 4, 3)), Tensor("hidden", "float32", (None, 2, 2, 5))
    block, none = (Tensor(name, "int32", np.shape(v), value=np.array(v)) for name, v in (("block", [2, 2]), ("none", [[0, 0], [0, 0]])))
    ops = (
        Op("SPACE_TO_BATCH_ND", (x, block, none), (wide,)),
        Op("CONV_2D", (wide, weights("w", 5, 3, 3, 3)), (hidden,)),
        Op("BATCH_TO_SPACE_ND", (hidden, block, none), (y,)),
        Op("FULLY_CONNECTED", (y, weights("v", 2, 80)), (z := Tensor("z", "float32", (None, 2)),)),
    )
    report = operator_report(pack([Graph("serving_default", (x,), (z,), ops)]))
    assert [op.macs for op in report.operators] == [0, multiplications((4, 4, 5), 27), 0, 160]


def test_a_constant_that_two_operators_read_counts_once_in_the_total() -> None:
    x, y, z = (Tensor(name, "float32", (None, 4)) for name in "xyz")
    kernel = weights("w", 4, 4)
    ops = (Op("FULLY_CONNECTED", (x, kernel), (y,)), Op("FULLY_CONNECTED", (y, kernel), (z,)))
    report = operator_report(pack([Graph("serving_default", (x,), (z,), ops)]))
    assert [op.parameters for op in report.operators] == [16, 16]
    assert (report.totals.parameters, report.totals.constant_bytes, report.totals.macs) == (16, 64, 32)


def test_half_precision_weights_belong_to_the_operator_that_computes_with_them() -> None:
    x, y, w = Tensor("x", "float32", (None, 4)), Tensor("y", "float32", (None, 3)), Tensor("w32", "float32", (3, 4))
    packed = Tensor("w", "int8", (3, 4), scale=0.5, value=np.ones((3, 4)))
    ops = (Op("DEQUANTIZE", (packed,), (w,)), Op("FULLY_CONNECTED", (x, w), (y,)))
    unpack, dense = operator_report(pack([Graph("serving_default", (x,), (y,), ops)])).operators
    assert (unpack.parameters, unpack.computes_in) == (0, "conversion")
    assert (dense.parameters, dense.constant_bytes, dense.computes_in) == (12, 12, "float32")


@pytest.mark.parametrize(
    ("activation", "weight", "computed"), [("float32", "int8", "hybrid"), ("int8", "int8", "int8"), ("int16", "int8", "int16")]
)
def test_what_an_operator_computes_in_is_told_by_activations_and_weights(activation: str, weight: str, computed: str) -> None:
    scale = None if activation == "float32" else 0.1
    x, y = Tensor("x", activation, (None, 4), scale), Tensor("y", activation, (None, 3), scale)
    kernel = Tensor("w", weight, (3, 4), scale=0.5, value=np.ones((3, 4)))
    assert one_operator("FULLY_CONNECTED", (x, kernel), y, schema.FullyConnectedOptionsT()).computes_in == computed


def test_what_cant_be_counted_is_named_in_the_total() -> None:
    report = operator_report(loop(np.eye(3, dtype=np.float32), 5))
    assert report.totals.uncounted == {"WHILE": 1}
    assert {op.graph for op in report.operators} == {0, 1, 2}
    assert report.totals.macs == 9  # the body's dense layer, once


def test_an_operator_that_nobody_knows_is_reported() -> None:
    x, y = Tensor("x", "float32", (None, 4)), Tensor("y", "float32", (None, 4))
    model = inspect.parse(pack([Graph("serving_default", (x,), (y,), (Op("RELU", (x,), (y,)),))]))
    model.operatorCodes[0].builtinCode = 9999
    report = operator_report(constants.pack(model))
    assert (report.operators[0].kind, report.operators[0].macs) == ("UNKNOWN_9999", None)
    assert report.totals.uncounted == {"UNKNOWN_9999": 1}


def test_damage_is_an_error_of_one_line() -> None:
    sound = bytearray(lstm())
    generator = np.random.default_rng(3)
    refused = 0
    for _ in range(300):
        damaged = bytearray(sound)
        for place in generator.integers(8, len(damaged), 8):
            damaged[place] = generator.integers(256)
        try:
            operator_report(bytes(damaged))
        except EdgeError as error:
            refused += 1
            assert "\n" not in str(error)
    assert 0 < refused < 300


# Layers


def layered(names: dict[str, str], activation: int = 0, twice: bool = False) -> bytes:
    """A dense layer and what stands behind it as the converter names it: `dense` and `behind` are the names of the two tensors."""
    x = Tensor("x", "float32", (None, 4))
    hidden, y = Tensor(names["dense"], "float32", (None, 3)), Tensor(names["behind"], "float32", (None, 3))
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = activation
    ops = (Op("FULLY_CONNECTED", (x, weights("w", 3, 4)), (hidden,), options), Op("MUL", (hidden, weights("s", 3)), (y,)))
    return pack([Graph("serving_default", (x,), (hidden, y) if twice else (y,), ops)])


DENSE = SourceLayer(name="dense", kind="Dense")
NORM = SourceLayer(name="norm", kind="BatchNormalization", inputs=("dense",))


def reason(report: OperatorsReport, layer: str) -> str | None:
    return next(each for each in report.layers if each.name == layer).reason


def test_names_of_nodes_tell_the_layer_even_if_the_model_bears_a_layers_name() -> None:
    names = {"dense": "norm/dense/MatMul;norm/dense/BiasAdd", "behind": "norm/norm/batchnorm/mul"}
    report = operator_report(layered(names), [DENSE, NORM])
    assert [op.layers for op in report.operators] == [("dense",), ("norm",)]


def test_a_normalization_that_stays_says_who_else_reads_its_input() -> None:
    names = {"dense": "model/dense/MatMul", "behind": "model/norm/batchnorm/mul"}
    other = SourceLayer(name="join", kind="Concatenate", inputs=("dense", "norm"), outputs=("join",))
    report = operator_report(layered(names, twice=True), [DENSE, NORM, other])
    assert reason(report, "norm") == "'dense' is read by join too, so its result is needed as it is"
    [block] = unfused_blocks(report)
    assert (block.layer, block.unfused, block.reason) == ("dense", ("norm",), reason(report, "norm"))


def test_a_normalization_that_stays_says_that_an_activation_is_before_it() -> None:
    names = {"dense": "model/dense/Relu", "behind": "model/norm/batchnorm/mul"}
    dense = SourceLayer(name="dense", kind="Dense", activation="relu")
    text = reason(operator_report(layered(names, 1), [dense, NORM]), "norm")
    assert text is not None and text.startswith("'dense' ends in an activation (relu)")


def test_a_normalization_that_nothing_hinders_says_that_the_converter_left_it() -> None:
    names = {"dense": "model/dense/MatMul", "behind": "model/norm/batchnorm/mul"}
    text = reason(operator_report(layered(names), [DENSE, NORM]), "norm")
    assert text == "LiteRT's converter doesn't make one operator of it and 'dense' (FULLY_CONNECTED)"


def test_a_normalization_behind_an_input_says_so() -> None:
    names = {"dense": "model/dense/MatMul", "behind": "model/norm/batchnorm/mul"}
    first = NORM.model_copy(update={"inputs": ()})
    text = reason(operator_report(layered(names), [DENSE, first]), "norm")
    assert text is not None and text.startswith("stands behind an input of the model")


def test_an_activation_that_no_kernel_has_says_so() -> None:
    names = {"dense": "model/dense/MatMul", "behind": "model/act/mul"}
    act = SourceLayer(name="act", kind="Activation", inputs=("dense",), activation="swish")
    report = operator_report(layered(names), [DENSE, act])
    assert reason(report, "act") == "swish isn't an activation of LiteRT's kernels, which have relu and relu6 alone"
    assert unfused_blocks(report) == ()


def test_a_layer_without_an_operator_says_why() -> None:
    names = {"dense": "model/dense/MatMul", "behind": "model/norm/batchnorm/mul"}
    dropout = SourceLayer(name="drop", kind="Dropout", inputs=("dense",))
    norm = NORM.model_copy(update={"inputs": ("drop",)})
    report = operator_report(layered(names), [DENSE, dropout, norm])
    assert reason(report, "drop") == "computes nothing once the model is trained"
    assert unfused_blocks(report)[0].unfused == ("norm",)  # seen through the dropout
    assert reason(report, "norm") == "LiteRT's converter doesn't make one operator of it and 'dense' (FULLY_CONNECTED)"


def test_an_output_that_is_named_after_the_signature_belongs_to_the_layers_up_to_the_kernel() -> None:
    x, y = Tensor("x", "float32", (None, 4)), Tensor("relu", "float32", (None, 3))
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    model = pack([Graph("serving_default", (x,), (y,), (Op("FULLY_CONNECTED", (x, weights("w", 3, 4)), (y,), options),))])
    dropout = SourceLayer(name="drop", kind="Dropout", inputs=("norm",))
    relu = SourceLayer(name="relu", kind="ReLU", inputs=("drop",), outputs=("relu",), activation="relu")
    report = operator_report(model, [DENSE, NORM, dropout, relu])
    assert report.operators[0].layers == ("dense", "norm", "relu")
    assert report.operators[0].activation == "RELU"
    assert {layer.name: layer.fused_into for layer in report.layers} == {"dense": None, "norm": "dense", "drop": None, "relu": "dense"}
    assert unfused_blocks(report) == ()


def test_layers_that_no_name_tells_of_belong_to_the_kernel_that_they_stand_behind() -> None:
    x, y = Tensor("x", "float32", (None, 4)), Tensor("model/dense/MatMul;", "float32", (None, 3))
    relu = SourceLayer(name="relu", kind="ReLU", inputs=("norm",), activation="relu")
    for activation, layers in (("RELU", ("dense", "norm", "relu")), ("NONE", ("dense", "norm"))):
        options = schema.FullyConnectedOptionsT()
        options.fusedActivationFunction = getattr(schema.ActivationFunctionType, activation)
        model = pack([Graph("serving_default", (x,), (y,), (Op("FULLY_CONNECTED", (x, weights("w", 3, 4)), (y,), options),))])
        assert operator_report(model, [DENSE, NORM, relu]).operators[0].layers == layers


def test_a_normalization_in_the_weights_of_the_dense_layer_behind_it_is_fused_too() -> None:
    x, y, z = (Tensor(name, "float32", (None, 3)) for name in ("x", "model/dense/Relu", "z"))
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    first = Op("FULLY_CONNECTED", (x, weights("w", 3, 3)), (y,), options)
    model = pack([Graph("serving_default", (x,), (z,), (first, Op("FULLY_CONNECTED", (y, weights("v", 3, 3)), (z,))))])
    dense = SourceLayer(name="dense", kind="Dense", activation="relu")
    last = SourceLayer(name="last", kind="Dense", inputs=("norm",), outputs=("z",))
    report = operator_report(model, [dense, NORM, last])
    assert {layer.name: layer.fused_into for layer in report.layers} == {"dense": None, "norm": "last", "last": None}
    assert unfused_blocks(report) == ()


def test_recurrent_operators_without_a_name_go_to_the_recurrent_layers_before_what_reads_them() -> None:
    layers = [
        SourceLayer(name="memory", kind="LSTM", activation="tanh"),
        SourceLayer(name="head", kind="Dense", inputs=("memory",), outputs=("y",)),
    ]
    report = operator_report(lstm(), layers)
    assert [op.layers for op in report.operators] == [("memory",), ("head",), ("head",)]

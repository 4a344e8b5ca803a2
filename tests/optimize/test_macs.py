"""Counting multiplications, held against TensorFlow's own profiler."""

import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from tf_keras import layers

from tfx_edge.optimize.macs import count_macs
from tfx_edge.schemas import EdgeError


def profiled(model):
    """Multiplications by the profiler: half of the floating-point operations of matrix products and convolutions."""
    spec = [tf.TensorSpec([1, *t.shape[1:]], t.dtype) for t in model.inputs]
    function = tf.function(lambda *x: model(x if len(x) > 1 else x[0])).get_concrete_function(*spec)
    graph = convert_variables_to_constants_v2(function, lower_control_flow=False).graph
    options = tf.compat.v1.profiler.ProfileOptionBuilder(tf.compat.v1.profiler.ProfileOptionBuilder.float_operation())
    options.with_empty_output().with_accounted_types(["Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2"])
    return tf.compat.v1.profiler.profile(graph, options=options.build()).total_float_ops // 2


def image_model(padding):
    twice = layers.Conv2D(5, 3, padding="same", name="twice")
    x = inputs = layers.Input((9, 7, 3))
    x = layers.Conv2D(5, (3, 2), strides=2, padding=padding, name="conv")(x)
    x = layers.BatchNormalization()(twice(twice(x)))
    x = layers.DepthwiseConv2D(2, depth_multiplier=2, padding=padding, name="depthwise")(x)
    x = layers.SeparableConv2D(4, 2, padding="same", name="separable")(x)
    inner = tf_keras.Sequential([layers.Conv2D(4, 1, input_shape=x.shape[1:]), layers.ReLU()], name="nested")
    x = layers.Dense(6, name="each_place")(inner(x))
    return tf_keras.Model(inputs, layers.Dense(2, name="head")(layers.Flatten()(x)))


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_convolutions_and_dense_layers_count_as_the_profiler_counts_them(padding):
    model = image_model(padding)
    counts = count_macs(model)
    assert list(counts) == [layer.name for layer in model.layers]
    assert sum(counts.values()) == profiled(model)
    assert counts["twice"] > 0
    assert counts["nested"] > 0


def test_a_transposed_convolution_puts_its_kernel_on_each_place_of_its_input():
    model = tf_keras.Sequential([layers.Conv2DTranspose(4, 3, strides=2, input_shape=(5, 6, 2), name="up")])
    assert count_macs(model) == {"up": 5 * 6 * 3 * 3 * 2 * 4}


def test_recurrent_layers_count_each_step_and_both_directions():
    inputs = layers.Input((7, 3))
    both = layers.Bidirectional(layers.LSTM(5, return_sequences=True), name="both")(inputs)
    each = layers.TimeDistributed(layers.Dense(2), name="each")(both)
    model = tf_keras.Model(inputs, layers.GRU(4, name="gru")(each))
    counts = count_macs(model)
    assert counts["both"] == 2 * 7 * 4 * 5 * (3 + 5)
    assert counts["each"] == 7 * 10 * 2
    assert counts["gru"] == 7 * 3 * 4 * (2 + 4)


def test_an_unknown_size_is_refused_by_layer():
    model = tf_keras.Sequential([layers.Conv2D(4, 3, input_shape=(None, 8, 2), name="conv")])
    with pytest.raises(EdgeError, match=r"layer 'conv' works on None x 6 places.*fixed shape"):
        count_macs(model)

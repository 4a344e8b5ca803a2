"""Blocks, m of n, XNNPACK's policy and per-layer sparsity: in the exported flatbuffer's weights, float and int8."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from ai_edge_litert import schema_py_generated as tflite
from tf_keras import layers

from tfx_edge.litert import inspect
from tfx_edge.litert.convert import convert
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.pruning.allocation import allocate
from tfx_edge.optimize.pruning.smallest import zero_smallest
from tfx_edge.optimize.pruning.wrapper import wrap_layers
from tfx_edge.schemas import (
    Block,
    ConfigError,
    ConstantSparsity,
    EdgeError,
    FineTuningConfig,
    MOfN,
    PolynomialDecay,
    PruningConfig,
    QuantizationConfig,
    SensitivityScan,
    Unstructured,
    XnnpackLatency,
)

FINE_TUNING = FineTuningConfig(label_key="y", epochs=2, batch_size=16, learning_rate=0.01, loss="mean_squared_error")


def config(sparsity=0.5, granularity=Unstructured(), **kwargs):
    return PruningConfig(target_sparsity=sparsity, granularity=granularity, fine_tuning=FINE_TUNING, **kwargs)


def model():
    """Channels that fill groups of four, that leave a short one, and that fill none."""
    tf_keras.utils.set_random_seed(5)
    inputs = layers.Input((6, 6, 2), name="x")
    x = layers.Conv2D(6, 3, name="conv")(inputs)
    x = layers.SeparableConv2D(8, 3, name="separable")(x)
    x = layers.Dense(12, "relu", name="dense")(layers.Flatten()(x))
    return tf_keras.Model(inputs, layers.Dense(4, name="head")(x), name="images")


def dataset(count=48):
    rng = np.random.default_rng(0)
    return tf.data.Dataset.from_tensor_slices(({"x": rng.normal(size=(count, 6, 6, 2)).astype(np.float32)}, rng.normal(size=(count, 4))))


def weights_in(flatbuffer):
    """Constant weights of convolutions and FULLY_CONNECTED, by the operator's place in the file, output channels first."""
    parsed = inspect.parse(flatbuffer)
    graph, found = parsed.subgraphs[0], []
    types = {tflite.TensorType.FLOAT32: np.float32, tflite.TensorType.INT8: np.int8}
    for op in graph.operators:
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in ("CONV_2D", "FULLY_CONNECTED"):
            tensor = graph.tensors[op.inputs[1]]
            data = np.asarray(parsed.buffers[tensor.buffer].data, np.uint8)
            found.append(np.frombuffer(data.tobytes(), types[tensor.type]).reshape(tensor.shape))
    return found


def exported(pruned, folder):
    """The flatbuffers of a model: float, and int8 weights."""
    pruned.save(str(folder / "model"), save_format="tf")
    flatbuffer = convert(str(folder / "model"))
    settings = QuantizationConfig(scheme="dynamic_range")
    return weights_in(flatbuffer), weights_in(apply_plan(flatbuffer, make_plan(flatbuffer, settings)))


def test_two_of_four_lie_along_the_last_axis_of_the_flatbuffers_weights_in_float_and_int8(tmp_path):
    pruned, report = prune(model(), dataset(), config(granularity=MOfN()))
    reasons = {layer.layer: layer.reason for layer in report.layers}
    assert reasons == {"conv": "its 2 input channels fill no group: 2 of each 4 stay", "separable": "", "dense": "", "head": ""}
    for weights in exported(pruned, tmp_path):
        conv, pointwise, dense, head = weights
        assert pointwise.shape == (8, 1, 1, 6)
        assert (conv != 0).mean() > 0.9
        for kernel in (pointwise, dense, head):
            rows = kernel.reshape(-1, kernel.shape[-1])
            for start in range(0, rows.shape[1], 4):
                group = rows[:, start : start + 4]
                assert ((group != 0).sum(1) <= 2).all()  # a short last group counts what it lacks as zero, as tfmot does
    assert {x.layer: x.sparsity for x in report.layers if x.pruned} == {"separable": pytest.approx(1 / 3), "dense": 0.5, "head": 0.5}


def test_blocks_are_zero_whole_in_the_flatbuffer_whose_rows_are_outputs(tmp_path):
    block = Block(inputs=4, outputs=2)
    pruned, report = prune(model(), dataset(), config(0.75, block))
    reasons = {layer.layer: layer.reason for layer in report.layers}
    assert reasons["conv"] == "blocks need weights of rank 2, those of Conv2D have rank 4"
    assert reasons["dense"] == reasons["head"] == ""
    for _, _, dense, head in exported(pruned, tmp_path):
        for kernel in (dense, head):
            outputs, inputs = kernel.shape
            tiles = (kernel.reshape(outputs // 2, 2, inputs // 4, 4) != 0).any((1, 3))
            # of one block in 4 some weights stay
            assert tiles.mean() == pytest.approx(0.25, abs=1 / tiles.size)


def test_blocks_are_ranked_by_the_mean_or_the_greatest_of_their_magnitudes():
    kernel = np.array([[4.0, 0.1, 3, -3], [0.1, 0.1, 3, 3]])
    np.testing.assert_array_equal(zero_smallest(kernel, 0.5, Block(inputs=2, outputs=2)) != 0, [[0, 0, 1, 1]] * 2)
    np.testing.assert_array_equal(zero_smallest(kernel, 0.5, Block(inputs=2, outputs=2, pooling="maximum")) != 0, [[1, 1, 0, 0]] * 2)


@pytest.mark.parametrize("pooling", ["average", "maximum"])
@pytest.mark.parametrize(("units", "block"), [(1, (4, 1)), (1, (1, 1)), (2, (16, 1)), (4, (2, 4))], ids=str)
def test_a_kernel_with_a_side_of_one_element_or_one_block_is_pruned_while_it_trains(units, block, pooling):
    inputs = tf_keras.Input((16,), name="x")
    head = tf_keras.Model(inputs, layers.Dense(units, use_bias=False, kernel_initializer="ones", name="head")(inputs))
    weights = np.arange(1.0, 16 * units + 1).reshape(16, units)
    head.set_weights([weights])
    rows, columns = block
    granularity = Block(inputs=rows, outputs=columns, pooling=pooling)
    wrapped = wrap_layers(head, {"head": 0.5}, config(0.5, granularity, schedule=ConstantSparsity()), steps=1)
    wrapper = wrapped.get_layer("head")
    wrapper.pruning_step.assign(1)
    wrapper.pruning_obj.conditional_mask_update()
    wrapper.pruning_obj.weight_mask_op()
    np.testing.assert_array_equal(wrapper.layer.kernel != 0, zero_smallest(weights, 0.5, granularity) != 0)
    assert (wrapper.layer.kernel.numpy() == 0).mean() == pytest.approx(0.5)


def test_blocks_that_do_not_divide_a_kernel_leave_it():
    with pytest.raises(EdgeError, match=r"head: its weights 12 x 4 don't divide into blocks of 4 inputs x 3 outputs"):
        prune(model(), dataset(), config(0.5, Block(outputs=3), layers=("head",)))


@pytest.mark.parametrize("kernel", [np.arange(1.0, 65).reshape(8, 8), np.ones((8, 8)), -np.eye(8)], ids=["ranked", "equal", "zeros"])
def test_the_smallest_units_go_and_doing_it_again_changes_nothing(kernel):
    for granularity, unit in ((Unstructured(), 1), (Block(inputs=2, outputs=4), 8)):
        pruned = zero_smallest(kernel, 0.5, granularity)
        zeros = int((pruned == 0).sum())
        assert zeros >= 32
        assert zeros == max(32, int((kernel == 0).sum())) or unit > 1
        np.testing.assert_array_equal(pruned[pruned != 0], kernel[pruned != 0])
        assert np.abs(pruned).sum() >= np.abs(kernel).sum() / 2  # the larger half stayed
        np.testing.assert_array_equal(zero_smallest(pruned, 0.5, granularity), pruned)


def test_groups_keep_their_largest_along_the_inputs():
    kernel = np.array([[1.0, 8], [-2, 7], [3, -6], [-4, 5], [9, 1]])
    np.testing.assert_array_equal(zero_smallest(kernel, 0.5, MOfN()), [[0, 8], [0, 7], [3, 0], [-4, 0], [9, 1]])


def sparse_capable(between=None):
    """The least that XNNPACK's sparse path takes: a padded 3x3 stride-2 first convolution on 3 channels, 1x1 and 3x3 depthwise, a mean."""
    tf_keras.utils.set_random_seed(5)
    inputs = layers.Input((12, 12, 3), name="x")
    x = layers.ZeroPadding2D(1)(inputs)
    x = layers.ReLU()(layers.Conv2D(8, 3, strides=2, name="first")(x))
    x = layers.DepthwiseConv2D(3, padding="same", name="depthwise")(x)
    x = layers.ReLU()(layers.Conv2D(16, 1, name="pointwise")(x))
    x = between(x) if between else x
    x = layers.GlobalAveragePooling2D(keepdims=True, name="mean")(x)
    return tf_keras.Model(inputs, layers.Dense(4, name="head")(layers.Flatten()(x)), name="net")


def colour_dataset():
    rng = np.random.default_rng(0)
    return tf.data.Dataset.from_tensor_slices(({"x": rng.normal(size=(32, 12, 12, 3)).astype(np.float32)}, rng.normal(size=(32, 4))))


def test_for_xnnpack_only_pointwise_convolutions_are_pruned():
    pruned, report = prune(sparse_capable(), colour_dataset(), config(0.75, XnnpackLatency()))
    assert {layer.layer: layer.reason for layer in report.layers} == {
        "first": "XNNPACK has sparse kernels for 1x1 Conv2D alone; it is Conv2D",
        "depthwise": "tfmot prunes no weight of the layer type DepthwiseConv2D",
        "pointwise": "",
        "head": "XNNPACK has sparse kernels for 1x1 Conv2D alone; it is Dense",
    }
    assert (pruned.get_layer("pointwise").get_weights()[0] == 0).mean() == 0.75


@pytest.mark.parametrize(
    ("make", "data", "text"),
    [
        (model, dataset, r"model 'images': XNNPACK can't run it with sparse kernels.*Conv2D 3x3"),
        (lambda: sparse_capable(layers.MaxPooling2D(name="pool")), colour_dataset, r"model 'net': XNNPACK .*'pool' \(MaxPooling2D\)"),
    ],
)
def test_what_xnnpack_cannot_run_sparse_is_refused_in_one_line(make, data, text):
    with pytest.raises(EdgeError, match=text) as error:
        prune(make(), data(), config(0.75, XnnpackLatency()))
    assert "\n" not in str(error.value)


def test_patterns_set_the_sparsity_of_layers_the_first_match_counting_and_the_ends_may_be_left():
    settings = config(0.5, layer_sparsity={"den*": 0.25, "d*": 0.9}, skip_first=True, skip_last=True)
    _, report = prune(model(), dataset(), settings)
    assert {x.layer: (round(x.sparsity, 2), x.target, x.reason) for x in report.layers} == {
        "conv": (0.0, 0.0, "skip_first: no other prunable layer comes before it"),
        "separable": (0.5, 0.5, ""),
        "dense": (0.25, 0.25, ""),
        "head": (0.0, 0.0, "skip_last: no other prunable layer comes after it"),
    }


def test_a_branch_has_a_first_layer_of_its_own():
    tf_keras.utils.set_random_seed(0)
    a, b = layers.Input((4,), name="a"), layers.Input((4,), name="b")
    long = layers.Dense(4, name="long_2")(layers.Dense(4, name="long")(a))
    out = layers.Dense(4, name="head")(layers.Add()([long, layers.Dense(4, name="short")(b)]))
    values = np.ones((16, 4), np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"a": values, "b": values}, values))
    _, report = prune(tf_keras.Model([a, b], out), data, config(skip_first=True))
    assert [layer.layer for layer in report.layers if layer.pruned] == ["long_2", "head"]


def test_a_sparsity_pattern_for_no_selected_layer_is_refused():
    with pytest.raises(EdgeError, match=r"layer_sparsity: pattern 'conv' matches none of the layers that `layers` selects: dense"):
        prune(model(), dataset(), config(layers=("dense",), layer_sparsity={"conv": 0.2}))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sparsity": 0.6, "granularity": MOfN()}, r"target_sparsity 0.6 must be zeros / group = 0.5"),
        ({"granularity": MOfN(), "schedule": ConstantSparsity()}, "schedule has no effect with granularity 'm_of_n'"),
        ({"granularity": MOfN(), "layer_sparsity": {"a": 0.5}}, "have no effect with granularity 'm_of_n'"),
        ({"sparsity": 0.6, "granularity": XnnpackLatency()}, "must be more than 2/3"),
        (
            {"schedule": PolynomialDecay(initial_sparsity=0.3), "layer_sparsity": {"a": 0.2}},
            "initial_sparsity 0.3 must be at most layer_sp",
        ),
        ({"sensitivity": SensitivityScan(), "layer_sparsity": {"a": 0.2}}, "both set the layers' sparsity"),
        ({"sparsity": 0.95, "sensitivity": SensitivityScan()}, "target_sparsity 0.95 must be at most 0.9"),
    ],
)
def test_settings_that_contradict_each_other_or_have_no_effect_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text) as error:
        config(**settings)
    assert "\n" not in str(error.value)


def test_a_config_without_a_granularity_prunes_single_weights_and_each_survives_json():
    assert PruningConfig(fine_tuning=FINE_TUNING).granularity == Unstructured()
    for settings in (config(0.25, MOfN(zeros=1)), config(0.5, Block(), layer_sparsity={"b*": 0.1, "a": 0.2}, sensitivity=None)):
        again = PruningConfig.from_json(settings.to_json())
        assert again == settings
        assert list(again.layer_sparsity) == list(settings.layer_sparsity)  # the order decides


def test_a_scan_spares_the_layer_whose_pruning_costs_most_and_all_together_reach_the_target():
    """One layer's smaller half does nothing, the other's all count."""
    tf_keras.utils.set_random_seed(0)
    inputs = layers.Input((8,), name="x")
    net = tf_keras.Model(inputs, layers.Dense(8, use_bias=False, name="needed")(layers.Dense(8, use_bias=False, name="spare")(inputs)))
    rng = np.random.default_rng(0)
    needed = rng.uniform(0.9, 1, (8, 8)) * rng.choice([-1, 1], (8, 8))
    spare = np.where(np.indices((8, 8)).sum(0) % 2, 1e-4, 1.0)
    net.set_weights([spare, needed])
    net.compile("sgd", "mse", metrics=["mae"])
    x = rng.normal(size=(64, 8)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, net(x).numpy()))
    settings = config(0.25, sensitivity=SensitivityScan(sparsities=(0.25, 0.5, 0.75), examples=50))
    _, report = prune(net, data, settings.model_copy(update={"fine_tuning": FINE_TUNING.model_copy(update={"loss": None})}))
    table = {layer.layer: layer for layer in report.sensitivity.layers}
    assert {name: layer.proposed for name, layer in table.items()} == {"spare": 0.5, "needed": 0.0}
    assert {x.layer: x.sparsity for x in report.layers} == {"spare": 0.5, "needed": 0.0}
    assert report.sensitivity.examples == 50
    for name, kernel in (("spare", 0), ("needed", 1)):  # each point is what the model loses with that kernel alone pruned
        for point in table[name].points:
            kernels = [spare, needed]
            kernels[kernel] = zero_smallest(kernels[kernel], point.sparsity, Unstructured())
            error = x[:50] @ kernels[0] @ kernels[1] - x[:50] @ spare @ needed
            assert point.loss == pytest.approx((error**2).mean(), rel=1e-3, abs=1e-6)
            assert point.metrics["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-3, abs=1e-5)


def test_allocation_is_the_best_of_all_on_a_grid():
    """Against every combination of sparsities, for convex curves, whose hull is the curve itself."""
    curves = [[(0.25, 0.1), (0.5, 0.3), (0.75, 0.9)], [(0.25, 0.05), (0.5, 0.5), (0.75, 1.5)], [(0.25, 0.0), (0.5, 0.0), (0.75, 2.0)]]
    sizes, target = [100, 200, 100], 0.375
    steps = [[(0.0, 0.0), *curve] for curve in curves]
    reaching = [
        a[1] + b[1] + c[1] for a in steps[0] for b in steps[1] for c in steps[2] if a[0] * 100 + b[0] * 200 + c[0] * 100 >= target * 400
    ]
    chosen = allocate(sizes, curves, target)
    assert sum(s * n for s, n in zip(chosen, sizes, strict=True)) == pytest.approx(target * 400)
    loss = sum(float(np.interp(s, [p[0] for p in curve], [p[1] for p in curve])) for s, curve in zip(chosen, steps, strict=True))
    assert loss <= min(reaching) + 1e-9


def test_allocation_takes_a_gain_for_noise_and_looks_over_a_bump():
    assert allocate([10, 10], [[(0.5, -0.3), (0.9, -0.1)], [(0.5, 0.1), (0.9, 0.2)]], 0.45) == (0.9, 0.0)
    assert allocate([10, 10], [[(0.3, 5.0), (0.6, 6.0)], [(0.3, 4.0), (0.6, 20.0)]], 0.3) == (0.6, 0.0)

"""Filter pruning: a smaller model that computes what the whole one does with those filters at zero."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.litert import inspect
from tfx_edge.litert.convert import convert
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.pruning.filters.channels import follow_channels
from tfx_edge.optimize.pruning.filters.removal import smaller_model
from tfx_edge.schemas import ConfigError, ConstantSparsity, EdgeError, Filters, FineTuningConfig, PruningConfig, SensitivityScan

FINE_TUNING = FineTuningConfig(label_key="y", epochs=1, batch_size=32, learning_rate=0.01, loss="mean_squared_error")


def config(sparsity=0.5, fine_tuning=FINE_TUNING, criterion="l1", multiple_of=1, **kwargs):
    granularity = Filters(criterion=criterion, multiple_of=multiple_of)
    return PruningConfig(target_sparsity=sparsity, granularity=granularity, fine_tuning=fine_tuning, **kwargs)


def plain(x):
    x = layers.Conv2D(6, 3, padding="same", activation="relu", name="conv")(x)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.MaxPooling2D()(layers.Dropout(0.1)(x))
    return layers.Dense(7, "swish", name="hidden")(layers.Flatten()(x))


def depthwise(x):
    x = layers.Conv2D(4, 3, name="conv", use_bias=False)(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization(name="norm")(x))
    x = layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same", name="depthwise")(x)
    x = layers.SeparableConv2D(5, 3, depth_multiplier=2, padding="same", activation="relu", name="separable")(x)
    x = layers.SeparableConv2D(6, 3, padding="same", name="separable_2")(layers.ZeroPadding2D(1)(x))
    return layers.GlobalAveragePooling2D()(layers.LeakyReLU()(x))


def residual(x):
    x = layers.Conv2D(6, 3, padding="same", name="a")(x)
    y = layers.Conv2D(6, 3, padding="same", activation="relu", name="b")(x)
    y = layers.Conv2D(6, 1, name="c")(y)
    x = layers.Activation("relu")(layers.Add()([x, y]))
    return layers.GlobalMaxPooling2D()(layers.Conv2D(4, 3, name="d")(x))


def concatenated(x):
    a, b = layers.Conv2D(5, 3, name="a")(x), layers.Conv2D(3, 3, activation="elu", name="b")(x)
    both = layers.BatchNormalization(name="norm")(layers.Concatenate()([a, b, a]))
    stacked = layers.Concatenate(axis=1)([both, layers.Conv2D(13, 1, name="c")(both)])
    return layers.Flatten()(layers.AveragePooling2D()(layers.PReLU(shared_axes=[1, 2])(stacked)))


def mixed(x):
    a, b = layers.Conv2D(5, 3, name="a")(x), layers.Conv2D(3, 3, name="b")(x)
    c = layers.Conv2D(8, 3, name="c")(x)
    return layers.Flatten()(layers.Maximum()([layers.Concatenate()([a, b]), c]))


def transposed(x):
    x = layers.Conv2DTranspose(5, 3, strides=2, activation="relu", name="up")(x)
    x = layers.Conv2D(4, 3, strides=2, name="down")(layers.UpSampling2D()(x))
    return layers.GlobalAveragePooling2D(keepdims=True)(x)


def shared(x):
    conv = layers.Conv2D(4, 3, padding="same", name="shared")
    x = layers.Conv2D(4, 3, name="before")(x)
    x = conv(layers.Activation("tanh")(conv(x)))
    return layers.Flatten()(x)


BODIES = {f.__name__: f for f in (plain, depthwise, residual, concatenated, mixed, transposed, shared)}


def built(body, seed=3):
    """A model whose every weight and statistic is drawn, so that no slice is like another."""
    tf_keras.utils.set_random_seed(seed)
    inputs = layers.Input((8, 8, 2), name="x")
    out = layers.Dense(3, name="head")(layers.Flatten()(body(inputs)))
    model = tf_keras.Model(inputs, out, name=body.__name__)
    rng = np.random.default_rng(seed)
    model.set_weights([rng.uniform(0.2, 1, w.shape) * rng.choice([1, 1, -1] if w.ndim > 1 else [1], w.shape) for w in model.get_weights()])
    return model


def dataset(count=32, seed=0):
    rng = np.random.default_rng(seed)
    return tf.data.Dataset.from_tensor_slices(
        ({"x": rng.normal(size=(count, 8, 8, 2)).astype(np.float32)}, np.zeros((count, 3), np.float32))
    )


def images(count=5):
    return np.random.default_rng(9).normal(size=(count, 8, 8, 2)).astype(np.float32)


def with_filters_at_zero(model, gone):
    """The reference: kernel and bias of each removed filter are zero, and so are scale and shift of a normalization and the bias of a
    depthwise convolution that it reaches; `gone` says which, by layer and position. It knows nothing of the readers of a filter."""
    whole = tf_keras.models.clone_model(model)
    whole.set_weights(model.get_weights())
    for name, positions in gone.items():
        layer = whole.get_layer(name)
        for variable in layer.weights:
            value, kind = variable.numpy(), variable.name.split("/")[-1].split(":")[0]
            if kind in ("bias", "gamma", "beta", "alpha"):
                value[..., positions] = 0
            elif kind in ("kernel", "pointwise_kernel"):
                np.moveaxis(value, -2 if "Transpose" in type(layer).__name__ else -1, -1)[..., positions] = 0
            variable.assign(value)
    return whole


# Where each filter's channel stands in the layers that could lift it from zero.
REACHED = {
    "plain": {"norm": lambda gone: gone["conv"]},
    "depthwise": {"norm": lambda g: g["conv"], "depthwise": lambda g: [2 * i + k for i in g["conv"] for k in (0, 1)]},
    "concatenated": {"norm": lambda g: [*g["a"], *(5 + i for i in g["b"]), *(8 + i for i in g["a"])]},
}


def removals(model, channels, rng):
    """Some filters of each layer that may lose any, those that go together together: (ids, positions by layer)."""
    ids = np.unique(np.concatenate(list(channels.filters.values())))
    free = [key for key in ids if int(key) not in channels.fixed]
    chosen = set(rng.choice(free, len(free) // 2, replace=False))
    for made in channels.filters.values():
        if set(made) <= chosen:
            chosen.remove(made[0])  # one stays
    gone = {name: [i for i, key in enumerate(made) if key in chosen] for name, made in channels.filters.items()}
    return chosen, gone


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_without_filters_a_model_computes_what_it_does_with_them_at_zero(name, seed):
    model = built(BODIES[name])
    channels = follow_channels(model)
    chosen, gone = removals(model, channels, np.random.default_rng(seed))
    assert chosen
    smaller = smaller_model(model, channels, chosen)
    gone |= {layer: reached(gone) for layer, reached in REACHED.get(name, {}).items()}
    expected = with_filters_at_zero(model, gone)(images()).numpy()
    np.testing.assert_allclose(smaller(images()).numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert not np.allclose(expected, model(images()).numpy(), rtol=1e-2)  # what went did matter
    assert smaller.count_params() < model.count_params()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("plain", {"conv": 3, "hidden": 3}),
        ("depthwise", {"conv": 2, "separable": 3, "separable_2": 3}),
        ("residual", {"a": 3, "b": 3, "c": 3, "d": 2}),
        ("mixed", {"a": 3, "b": 1, "c": 4}),
        ("shared", {"shared": 2, "before": 2}),
    ],
)
def test_half_of_the_filters_go_and_layers_that_are_added_lose_the_same(name, kept):
    smaller, report = prune(built(BODIES[name]), dataset(), config())
    got = {layer.layer: layer.kept for layer in report.layers if layer.pruned}
    assert got == kept
    assert {n: smaller.get_layer(n).output.shape[-1] for n in kept if n != "shared"} == {n: k for n, k in kept.items() if n != "shared"}
    assert [layer.reason for layer in report.layers if layer.layer == "head"] == ["its output is the model's"]


@pytest.mark.parametrize("criterion", ["l1", "l2"])
def test_the_filters_of_the_least_norm_go(criterion):
    model = built(plain)
    kernel = model.get_layer("conv").get_weights()[0]
    smaller, _ = prune(model, dataset(), config(criterion=criterion, layers=("conv",), fine_tuning=frozen()))
    norms = np.linalg.norm(kernel.reshape(-1, 6), ord=1 if criterion == "l1" else 2, axis=0)
    np.testing.assert_allclose(smaller.get_layer("conv").get_weights()[0], kernel[..., np.sort(np.argsort(norms)[3:])], atol=1e-6)


def frozen():
    """Training that changes next to nothing."""
    return FINE_TUNING.model_copy(update={"learning_rate": 1e-12})


def test_by_batch_normalization_the_least_scales_go_and_layers_without_one_are_left():
    model = built(plain)
    gamma = model.get_layer("norm").gamma
    gamma.assign([0.5, -0.1, 0.9, 0.01, -0.8, 0.02])
    smaller, report = prune(model, dataset(), config(criterion="batch_norm", fine_tuning=frozen()))
    np.testing.assert_allclose(smaller.get_layer("norm").gamma, [0.5, 0.9, -0.8], atol=1e-6)
    assert {x.layer: x.reason for x in report.layers if not x.pruned} == {
        "hidden": "no BatchNormalization with a scale reads its filters",
        "head": "its output is the model's",
    }


def test_the_filters_that_stay_are_a_multiple():
    _, report = prune(built(residual), dataset(), config(0.7, multiple_of=4))
    kept = {layer.layer: (layer.kept, layer.reason) for layer in report.layers[:4]}
    assert kept == {"a": (4, ""), "b": (4, ""), "c": (4, ""), "d": (4, "nothing of its 4 filters could go at this sparsity")}


def unfollowed(x):
    a = layers.Conv2D(4, 3, activation="sigmoid", name="a")(x)
    b = layers.Conv2D(4, 3, name="b")(a)
    c = layers.Conv2D(4, 3, name="c")(layers.Softmax(name="soft")(layers.LayerNormalization(name="ln")(b)))
    d = layers.Conv2D(4, 1, groups=2, name="d")(c)
    e = layers.Add()([layers.Conv2D(2, 1, name="e")(x), x])
    return layers.Concatenate()([layers.Flatten()(d), layers.Flatten()(layers.Conv2D(5, 1, name="f")(e))])


def test_layers_that_cannot_lose_filters_are_left_with_the_reason():
    _, report = prune(built(unfollowed), dataset(), config())
    reasons = {layer.layer: layer.reason for layer in report.layers}
    through = "through which channels can't be followed"
    assert reasons == {
        "a": "activation 'sigmoid' in layer 'a' makes something else of 0, or mixes channels",
        "b": f"layer 'ln' (LayerNormalization) reads it, {through}",
        "c": f"layer 'd' (Conv2D) reads it, {through}",
        "e": "it goes together with the model's input",
        "f": "",
        "head": "its output is the model's",
    }


def test_a_layer_that_is_not_selected_keeps_those_whole_that_are_added_to_it():
    _, report = prune(built(residual), dataset(), config(layers=("a", "b")))
    reasons = {layer.layer: layer.reason for layer in report.layers}
    assert reasons["a"] == "its filters go together with those of 'c': no pattern in layers matches it"
    assert reasons["b"] == ""
    with pytest.raises(
        EdgeError, match=r"no layer of model 'residual' that matches can lose filters \(a: its filters go together"
    ) as error:
        prune(built(residual), dataset(), config(layers=("a",)))
    assert "\n" not in str(error.value)


def test_patterns_set_each_layers_share_and_the_first_and_last_may_be_left():
    settings = config(0.5, layer_sparsity={"b": 0.84, "[cd]": 0.2}, skip_first=True)
    _, report = prune(built(residual), dataset(), settings)
    assert {x.layer: x.kept for x in report.layers} == {"a": 6, "b": 1, "c": 6, "d": 3, "head": 3}
    assert {x.layer: x.reason for x in report.layers}["a"] == "skip_first: no other prunable layer comes before it"


def learnable(count=200):
    """Bright above, in the middle, or below."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, count)
    x = rng.uniform(0, 0.3, (count, 9, 8, 2)).astype(np.float32)
    for i, label in enumerate(labels):
        x[i, 3 * label : 3 * label + 3] += 0.5
    return x, labels


def test_the_exported_model_is_smaller_in_bytes_and_multiplications_and_learns_its_task_again(tmp_path):
    tf_keras.utils.set_random_seed(0)
    x, labels = learnable()
    inputs = layers.Input((9, 8, 2), name="x")
    y = layers.Conv2D(24, 3, activation="relu", name="conv")(inputs)
    y = layers.MaxPooling2D()(layers.Conv2D(24, 3, activation="relu", name="conv_2")(y))
    model = tf_keras.Model(inputs, layers.Dense(3, name="head")(layers.Dense(64, "relu", name="dense")(layers.Flatten()(y))))
    model.compile(tf_keras.optimizers.Adam(0.005), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(x, labels, epochs=4, verbose=0)
    tuning = FineTuningConfig(label_key="y", epochs=4, batch_size=32, learning_rate=0.005)
    smaller, report = prune(model, tf.data.Dataset.from_tensor_slices(({"x": x}, labels)), config(0.5, tuning))
    assert smaller.evaluate(x, labels, verbose=0)[1] > 0.95
    assert report.macs_after < 0.4 * report.macs_before
    assert report.parameters_after == smaller.count_params()
    sizes, macs = [], []
    for each, name in ((model, "whole"), (smaller, "smaller")):
        each.save(str(tmp_path / name), save_format="tf")
        flatbuffer = convert(str(tmp_path / name))
        sizes.append(len(flatbuffer))
        macs.append(flatbuffer_macs(flatbuffer))
    assert sizes[1] < 0.5 * sizes[0]
    assert macs == [report.macs_before, report.macs_after]


def flatbuffer_macs(flatbuffer):
    """Multiplications by the shapes in a file: elements of each output, times the weights that make one."""
    parsed = inspect.parse(flatbuffer)
    graph, total = parsed.subgraphs[0], 0
    for op in graph.operators:
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in ("CONV_2D", "FULLY_CONNECTED"):
            out, weights = graph.tensors[op.outputs[0]].shape, graph.tensors[op.inputs[1]].shape
            total += int(np.prod(out) * np.prod(weights[1:]))
    return total


def test_settings_without_effect_are_refused():
    with pytest.raises(ConfigError, match="schedule has no effect with granularity 'filters'"):
        config(schedule=ConstantSparsity())


def test_a_scan_sees_no_loss_in_filters_that_nobody_reads():
    model = built(plain)
    kernel, bias = model.get_layer("head").get_weights()
    kernel[:5] = 0  # the first five units of "hidden" go nowhere
    model.get_layer("head").set_weights([kernel, bias])
    hidden = model.get_layer("hidden")
    hidden.set_weights([hidden.get_weights()[0] * (1 + np.arange(7)), hidden.get_weights()[1]])  # and have the least norm
    _, report = prune(model, dataset(), config(0.5, sensitivity=SensitivityScan(sparsities=(0.3, 0.7), examples=16)))
    table = {layer.layer: layer for layer in report.sensitivity.layers}
    assert [point.loss for point in table["hidden"].points] == [0.0, 0.0]
    assert table["conv"].points[1].loss != 0
    assert sum(x.weights * x.proposed for x in table.values()) == pytest.approx(0.5 * sum(x.weights for x in table.values()), rel=1e-4)


def test_a_pruning_that_would_remove_no_filter_is_refused():
    with pytest.raises(EdgeError, match="no filter goes .*multiple_of 64.*lower Filters.multiple_of") as caught:
        prune(built(plain), dataset(), config(0.3, multiple_of=64))
    assert len(str(caught.value).splitlines()) == 1

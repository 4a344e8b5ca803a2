"""Pruning: the sparsity asked for, where it was asked for, and a model that is otherwise the one that was given."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.pruning.schedule import schedule_in_steps
from tfx_edge.optimize.pruning.wrapper import wrap_layers
from tfx_edge.schemas import ConstantSparsity, EdgeError, FineTuningConfig, PolynomialDecay, PruningConfig

FINE_TUNING = FineTuningConfig(label_key="y", epochs=4, batch_size=32, learning_rate=0.01)
LOGITS = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def config(sparsity=0.5, schedule=None, layers=("*",), **fine_tuning):
    return PruningConfig(
        target_sparsity=sparsity,
        schedule=schedule or PolynomialDecay(),
        layers=layers,
        fine_tuning=FINE_TUNING.model_copy(update=fine_tuning),
    )


def points(count=400):
    """Separable: four scalars, the label is the largest of the first three."""
    values = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    return {name: values[:, i] for i, name in enumerate("abcd")}, values[:, :3].argmax(axis=1)


def point_dataset(count=400):
    return tf.data.Dataset.from_tensor_slices(points(count))


def point_inputs():
    return [layers.Input((1,), name=name) for name in "abcd"]


@pytest.fixture(scope="module")
def point_model():
    """Scalar inputs, trained until it separates the points."""
    tf_keras.utils.set_random_seed(7)
    inputs = point_inputs()
    hidden = layers.Dense(30, "relu", name="first")(layers.Concatenate()(inputs))
    hidden = layers.BatchNormalization(momentum=0.8, name="norm")(hidden)
    hidden = layers.Dense(17, "relu", name="second")(hidden)
    model = tf_keras.Model(inputs, layers.Dense(3, name="head")(hidden), name="points")
    model.compile(tf_keras.optimizers.Adam(0.01), LOGITS, metrics=["accuracy"])
    model.fit(*points(), epochs=15, batch_size=32, verbose=0)
    return model


@pytest.fixture(scope="module")
def pruned_points(point_model):
    """What most tests look at: the model at 0.75 and its report."""
    return prune(point_model, point_dataset(), config(0.75, epochs=8))


@pytest.fixture(scope="module")
def image_model():
    tf_keras.utils.set_random_seed(7)
    model = tf_keras.Sequential(
        [
            layers.Conv2D(6, 3, activation="relu", name="conv"),
            layers.DepthwiseConv2D(3, name="depthwise"),
            layers.SeparableConv2D(5, 3, name="separable"),
            layers.Flatten(),
            layers.Dense(2, activation="softmax", name="head"),
        ],
        name="images",
    )
    model.build((None, 8, 8, 1))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def image_dataset(model):
    """Bright above or bright below."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 160)
    images = rng.uniform(0, 0.3, (160, 8, 8, 1)).astype(np.float32)
    images[labels == 0, :4] += 0.7
    images[labels == 1, 4:] += 0.7
    return tf.data.Dataset.from_tensor_slices(({model.input_names[0]: images}, labels))


def weights_of(model):
    return {v.name: v.numpy() for v in model.weights}


def zeros(array):
    return int((array == 0).sum())


@pytest.mark.parametrize(("sparsity", "schedule"), [(0.5, ConstantSparsity(begin=0.2)), (0.8, PolynomialDecay())], ids=repr)
def test_every_kernel_reaches_the_target_within_one_weight_and_accuracy_is_kept(point_model, schedule, sparsity):
    pruned, report = prune(point_model, point_dataset(), config(sparsity, schedule, epochs=8))
    for name, values in weights_of(pruned).items():
        if "kernel" in name:
            assert abs(zeros(values) - sparsity * values.size) <= 1, name
    _, before = point_model.evaluate(*points(), verbose=0)
    _, after = pruned.evaluate(*points(), verbose=0)
    assert after > before - 0.04
    assert [(layer.layer, layer.pruned) for layer in report.layers] == [("first", True), ("norm", False), ("second", True), ("head", True)]


def test_convolutions_are_pruned_where_tfmot_can_and_the_rest_is_reported(image_model):
    pruned, report = prune(image_model, image_dataset(image_model), config(0.6))
    weights = weights_of(pruned)
    for name in ("conv/kernel:0", "separable/pointwise_kernel:0", "head/kernel:0"):
        assert abs(zeros(weights[name]) - 0.6 * weights[name].size) <= 1, name
    for name in ("depthwise/depthwise_kernel:0", "separable/depthwise_kernel:0"):
        assert zeros(weights[name]) == 0, name
    left = {layer.layer: layer.reason for layer in report.layers if not layer.pruned}
    assert left == {"depthwise": "tfmot prunes no weight of the layer type DepthwiseConv2D"}
    assert pruned.evaluate(image_dataset(image_model).batch(32).map(lambda x, y: (next(iter(x.values())), y)), verbose=0)[1] > 0.95


@pytest.mark.parametrize(
    ("steps", "schedule"), [(1, PolynomialDecay()), (1, ConstantSparsity(begin=0.9)), (3, PolynomialDecay(begin=0.5, end=1.0))], ids=repr
)
def test_even_a_few_steps_reach_the_target(point_model, schedule, steps):
    pruned, _ = prune(point_model, point_dataset(32 * steps), config(0.7, schedule, epochs=1))
    kernel = weights_of(pruned)["second/kernel:0"]
    assert abs(zeros(kernel) - 0.7 * kernel.size) <= 1


def updates(schedule, steps, calls=1):
    """The (training step, sparsity) of each update, as tfmot's wrapper asks its schedule: at each call of the layer, counted from 1."""
    asked = np.arange(1, steps * calls + 1)
    update, sparsity = schedule(tf.constant(asked, tf.int64))
    sparsity = np.broadcast_to(sparsity, asked.shape)
    return [(1 + (int(call) - 1) // calls, float(sparsity[call - 1])) for call in asked[update.numpy()]]


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("steps", [1, 2, 3, 7, 10, 66, 1000])
@pytest.mark.parametrize("frequency", [1, 10, 13])
@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.6), (0.3, 1.0), (0.97, 0.98)])
def test_the_decay_ends_at_its_share_of_the_steps_exactly_at_the_target(begin, end, frequency, steps, calls):
    given = config(0.8, PolynomialDecay(begin=begin, end=end, frequency=frequency))
    made = updates(schedule_in_steps(given.schedule, 0.8, steps, calls), steps, calls)
    assert made[-1][1] == pytest.approx(0.8, abs=1e-6)
    assert abs(made[-1][0] - max(1, end * steps)) <= 1
    assert made[0][0] >= begin * steps
    assert made[0][0] <= begin * steps + 1 + frequency
    assert all(b[0] - a[0] <= frequency for a, b in itertools.pairwise(made))


def test_a_layer_that_the_model_calls_twice_keeps_the_schedule_of_the_others():
    inputs, twice = layers.Input((4,)), layers.Dense(4, name="twice")
    copy = tf_keras.Model(inputs, layers.Dense(3, name="once")(twice(twice(inputs))))
    wrapped = wrap_layers(copy, {"once": 0.8, "twice": 0.8}, config(0.8, PolynomialDecay(frequency=5)), steps=100)
    made = {layer.layer.name: updates(layer.pruning_schedule, 100, calls) for layer, calls in zip(wrapped.layers[1:], (2, 1), strict=True)}
    assert made["once"][-1] == (60, pytest.approx(0.8))
    assert [step for step, _ in made["twice"]] == [step for step, _ in made["once"]]


@pytest.mark.parametrize("steps", [1, 2, 10, 66])
def test_constant_sparsity_starts_at_its_share_and_goes_on(steps):
    made = updates(schedule_in_steps(ConstantSparsity(begin=0.5, frequency=3), 0.8, steps), steps)
    assert all(sparsity == pytest.approx(0.8) for _, sparsity in made)
    assert made[0][0] == min(steps, 1 + int(0.5 * steps))
    assert steps - made[-1][0] < 3


def test_the_decay_follows_zhu_and_guptas_formula():
    given = config(0.8, PolynomialDecay(initial_sparsity=0.2, power=2, end=1.0, frequency=1))
    made = updates(schedule_in_steps(given.schedule, 0.8, 101), 101)
    for step, sparsity in made:
        assert sparsity == pytest.approx(0.8 - 0.6 * (1 - (step - 1) / 100) ** 2, abs=1e-5)
    assert len(made) == 101


def test_a_pattern_selects_and_the_other_kernels_stay_dense(point_model):
    pruned, report = prune(point_model, point_dataset(64), config(0.5, layers=("sec*", "hea?"), epochs=1))
    weights = weights_of(pruned)
    assert zeros(weights["first/kernel:0"]) == 0
    assert zeros(weights["second/kernel:0"]) == weights["second/kernel:0"].size // 2
    assert report.layers[0].reason == "no pattern in layers matches it"
    assert report.sparsity == pytest.approx(0.5, abs=0.01)


def test_the_pruned_model_is_the_given_one_in_structure_and_compile_config(point_model, pruned_points):
    pruned, _ = pruned_points
    assert pruned.get_config() == point_model.get_config()
    assert pruned.get_compile_config() == point_model.get_compile_config()
    assert [v.name for v in pruned.weights] == [v.name for v in point_model.weights]
    assert pruned.get_layer("second").output.shape == (None, 17)  # a layer of one model only


def test_a_saved_model_reloads_trains_and_agrees_with_the_report(pruned_points, tmp_path):
    pruned, report = pruned_points
    pruned.save(str(tmp_path / "model"), save_format="tf")
    loaded = tf_keras.models.load_model(str(tmp_path / "model"))
    x, y = points()
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), pruned.predict(x, verbose=0))
    kernels = {v.name.split("/")[0]: v.numpy() for v in loaded.weights if "kernel" in v.name}
    counted = {layer.layer: (layer.weights, layer.zeros) for layer in report.layers if layer.pruned}
    assert counted == {name: (kernel.size, zeros(kernel)) for name, kernel in kernels.items()}
    assert report.sparsity == sum(map(zeros, kernels.values())) / sum(k.size for k in kernels.values())
    assert type(report).from_json(report.to_json()) == report
    right = np.mean(loaded.predict(x, verbose=0).argmax(axis=1) == y)
    assert loaded.evaluate(x, y, verbose=0)[1] == pytest.approx(right)  # still the accuracy of integer labels
    loaded.fit(x, y, verbose=0)  # compiled, as the one that was given


def test_the_same_config_gives_the_same_model_and_the_given_one_stays_as_it_was(point_model, pruned_points):
    weights, optimizer, steps = weights_of(point_model), point_model.optimizer, int(point_model.optimizer.iterations)
    again, _ = prune(point_model, point_dataset(), config(0.75, epochs=8))
    for a, b in zip(pruned_points[0].get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    for name, values in weights_of(point_model).items():
        np.testing.assert_array_equal(values, weights[name])
    assert point_model.optimizer is optimizer
    assert int(optimizer.iterations) == steps
    assert not any(hasattr(layer, "get_prunable_weights") for layer in point_model.layers)


def test_a_target_of_zero_only_fine_tunes(point_model):
    pruned, report = prune(point_model, point_dataset(64), config(0.0, epochs=1))
    assert report.sparsity == 0
    assert zeros(pruned.get_layer("second").get_weights()[0]) == 0


def test_equal_weights_are_pruned_to_the_target_too():
    tf_keras.utils.set_random_seed(0)
    inputs = layers.Input((6,), name="x")
    model = tf_keras.Model(inputs, layers.Dense(4, kernel_initializer="ones", name="flat")(inputs))
    model.compile("sgd", "mse")
    same = tf.data.Dataset.from_tensor_slices(({"x": np.ones((32, 6), np.float32)}, np.ones((32, 4), np.float32)))
    pruned, _ = prune(model, same, config(0.5))  # equal gradients too: fine-tuning leaves the kernel's values equal
    assert zeros(pruned.get_weights()[0]) == 12


def test_statistics_of_a_normalization_layer_survive():
    tf_keras.utils.set_random_seed(0)
    x, y = points()
    values = {"x": 50 + 9 * np.stack(list(x.values()), axis=1)}
    norm = layers.Normalization(name="statistics")
    norm.adapt(values["x"])
    inputs = layers.Input((4,), name="x")
    model = tf_keras.Model(inputs, layers.Dense(3, name="head")(norm(inputs)))
    model.compile("adam", LOGITS)
    pruned, report = prune(model, tf.data.Dataset.from_tensor_slices((values, y)), config(0.5))
    np.testing.assert_array_equal(pruned.get_layer("statistics")(values["x"]), norm(values["x"]))
    assert [layer.reason for layer in report.layers] == ["tfmot doesn't support the layer type Normalization", ""]


def test_layers_that_make_take_or_pass_on_a_mask_are_pruned():
    """A mask that got lost would change the outputs, which `prune` compares."""
    tf_keras.utils.set_random_seed(0)
    inputs = layers.Input((3,), name="ids", dtype="int32")
    hidden = layers.Dense(5, name="dense")(layers.Embedding(9, 4, mask_zero=True, name="embedding")(inputs))
    model = tf_keras.Model(inputs, layers.Dense(1, "sigmoid", name="head")(layers.SimpleRNN(3, name="rnn")(hidden)))
    model.compile("adam", "binary_crossentropy")
    ids = np.random.default_rng(0).integers(0, 9, (64, 3))
    pruned, report = prune(model, tf.data.Dataset.from_tensor_slices(({"ids": ids}, ids[:, 0] % 2)), config(0.5, epochs=1))
    assert all(layer.pruned for layer in report.layers)
    for name, values in weights_of(pruned).items():
        if "bias" not in name:  # the recurrent kernel too
            assert abs(zeros(values) - values.size / 2) <= 1, name


class Scaled(layers.Layer):
    """Leaves its name to chance and its config to Keras."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def call(self, inputs):
        return inputs * self.factor


class Unconfigured(Scaled):
    def get_config(self):
        raise NotImplementedError("Unconfigured has no config")


def test_a_custom_layer_is_copied_by_its_config_or_the_error_says_what_it_lacks():
    inputs = layers.Input((4,), name="x")
    dataset = tf.data.Dataset.from_tensor_slices(({"x": np.ones((8, 4), np.float32)}, np.ones((8, 3), np.float32)))
    settings = config(0.5, epochs=1, loss="mean_squared_error")
    pruned, _ = prune(tf_keras.Model(inputs, layers.Dense(3, name="head")(Scaled(2.0)(inputs))), dataset, settings)
    assert zeros(pruned.get_layer("head").get_weights()[0]) == 6
    with pytest.raises(EdgeError, match=r"Unconfigured has no config.*get_config"):
        prune(tf_keras.Model(inputs, layers.Dense(3)(Unconfigured(2.0)(inputs))), dataset, settings)


def test_a_nested_model_is_left_and_reported(point_model):
    inner = tf_keras.Sequential([layers.Dense(5, input_shape=(4,))], name="inner")
    inputs = point_inputs()
    model = tf_keras.Model(inputs, layers.Dense(3, name="head")(inner(layers.Concatenate()(inputs))))
    model.compile("adam", LOGITS)
    pruned, report = prune(model, point_dataset(), config(0.5))
    assert [(layer.layer, layer.pruned) for layer in report.layers] == [("inner", False), ("head", True)]
    assert "nested model" in report.layers[0].reason
    assert zeros(pruned.get_layer("inner").get_weights()[0]) == 0


def test_a_pattern_without_a_match_lists_the_layers(point_model):
    with pytest.raises(EdgeError, match=r"'secnod' matches no layer.*first, norm, second, head"):
        prune(point_model, point_dataset(), config(layers=("first", "secnod")))


def test_a_selection_that_cannot_be_pruned_gives_each_reason(point_model):
    with pytest.raises(EdgeError, match=r"norm: tfmot prunes no weight of the layer type BatchNormalization"):
        prune(point_model, point_dataset(), config(layers=("norm",)))


def test_nan_in_the_weights_names_the_variable(point_model):
    broken = tf_keras.models.clone_model(point_model)
    broken.set_weights(point_model.get_weights())
    kernel = broken.get_layer("second").kernel
    kernel.assign(tf.where(tf.range(17) == 3, np.nan, kernel))
    with pytest.raises(EdgeError, match=r"'second/kernel' holds 30 NaN or infinite values of 510"):
        prune(broken, point_dataset(), config())


class Subclassed(tf_keras.Model):
    def call(self, inputs):
        return inputs


def keras_3_model():
    keras = pytest.importorskip("keras", minversion="3")
    return keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (Subclassed, "a subclassed model \\(Subclassed\\)"),
        (keras_3_model, "keras.*expected a Keras 2"),
        (lambda: tf_keras.Sequential([layers.Dense(3)]), "without a known input shape"),
    ],
)
def test_models_whose_layers_cannot_be_replaced_are_refused(make, text):
    with pytest.raises(EdgeError, match=text):
        prune(make(), point_dataset(), config())

"""Low-rank factorization: the same function at full rank, the nearest one below, and only where it saves."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.litert.convert import convert
from tfx_edge.optimize.float_model.keras_model import from_keras_model
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.low_rank.choice import Candidate
from tfx_edge.optimize.low_rank.factors import channel_matrices, rank_for, spatial_matrix
from tfx_edge.optimize.low_rank.layers import factored
from tfx_edge.schemas import EdgeError, EnergyRank, FineTuningConfig, LowRankConfig, MacBudget

RNG = np.random.default_rng(0)
STILL = FineTuningConfig(label_key="y", epochs=1, batch_size=32, learning_rate=1e-12)  # trains, and changes next to nothing


def config(rank=EnergyRank(), **values):
    return LowRankConfig(**{"rank": rank, "fine_tuning": STILL, **values})


def filled(layer, shape):
    """A layer with random weights behind an input, as a model."""
    x = tf_keras.Input(shape)
    model = tf_keras.Model(x, layer(x))
    layer.set_weights([RNG.normal(size=w.shape) for w in layer.get_weights()])
    return model


CASES = [
    (lambda: layers.Dense(5, activation="tanh"), (7,), "svd", (5,)),
    (lambda: layers.Dense(6, use_bias=False), (3, 4), "svd", (4,)),
    (lambda: layers.Conv2D(5, 1, strides=2, activation="relu"), (6, 7, 4), "svd", (4,)),
    *(
        (
            lambda s=strides, p=padding, d=dilation: layers.Conv2D(5, (3, 2), strides=s, padding=p, dilation_rate=d),
            (9, 10, 4),
            method,
            ranks,
        )
        for strides, dilation in [((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 2), (1, 1)), ((1, 1), (2, 3))]
        for padding in ("same", "valid")
        for method, ranks in [("spatial", (10,)), ("tucker2", (4, 5))]
    ),
]


@pytest.mark.parametrize(("make", "shape", "method", "ranks"), CASES)
def test_at_full_rank_the_factors_compute_what_the_layer_does(make, shape, method, ranks):
    layer = make()
    model = filled(layer, shape)
    part = factored(Candidate(layer, method, ""), ranks, "x")
    x = tf_keras.Input(shape)
    twin = tf_keras.Model(x, tf_keras.Sequential(part.layers)(x))
    part.set_weights()
    batch = RNG.normal(size=(3, *shape)).astype(np.float32)
    np.testing.assert_allclose(twin(batch), model(batch), rtol=1e-4, atol=1e-4)
    assert part.error < 1e-12
    assert part.layers[-1].name == layer.name


@pytest.mark.parametrize("energy", [0.3, 0.6, 0.9, 0.999])
def test_a_rank_keeps_the_energy_asked_for_and_one_less_would_not(energy):
    matrix = RNG.normal(size=(12, 9)) @ np.diag(1.0 / np.arange(1, 10))
    values = np.linalg.svd(matrix, compute_uv=False)
    rank, values = rank_for(values, energy), values**2
    assert values[:rank].sum() >= energy * values.sum() > values[: rank - 1].sum()


def convnet():
    tf_keras.utils.set_random_seed(1)
    image = tf_keras.Input((8, 8, 3), name="image")
    x = layers.Conv2D(16, 3, padding="same", activation="relu", name="wide")(image)
    x = layers.Conv2D(24, 3, strides=2, padding="same", activation="relu", name="strided")(x)
    x = layers.DepthwiseConv2D(3, name="depthwise")(x)
    x = layers.Conv2D(16, 1, kernel_constraint=tf_keras.constraints.MaxNorm(5), name="constrained")(x)
    x = layers.Conv2D(32, 1, activation="relu", name="pointwise")(x)
    x = layers.Flatten()(x)
    model = tf_keras.Model(image, layers.Dense(4, name="head")(layers.Dense(64, "relu", name="hidden")(x)), name="net")
    model.compile("sgd", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def low_rank(model, rank=2):
    """The same model with kernels that are of a rank."""
    for layer in model.layers:
        if type(layer) in (layers.Conv2D, layers.Dense):
            kernel, bias = layer.get_weights()
            if kernel.ndim == 2 or layer.kernel_size == (1, 1):
                flat = kernel.reshape(kernel.shape[-2:])
                u, s, v = np.linalg.svd(flat, full_matrices=False)
                kernel = ((u[:, :rank] * s[:rank]) @ v[:rank]).reshape(kernel.shape)
            else:
                a, b = RNG.normal(size=(kernel.shape[2], rank)), RNG.normal(size=(rank, kernel.shape[3]))
                kernel = np.einsum("ir,hwrs,so->hwio", a, RNG.normal(size=(3, 3, rank, rank)), b) / 9
            layer.set_weights([kernel, bias])
    return model


@pytest.fixture(scope="module")
def images():
    return tf.data.Dataset.from_tensor_slices(({"image": RNG.normal(size=(64, 8, 8, 3)).astype("f4")}, RNG.integers(0, 4, 64)))


@pytest.fixture(scope="module")
def thinned(images):
    model = low_rank(convnet())
    return model, *factorize(model, images, config(EnergyRank(energy=0.999999)))


def test_kernels_of_a_low_rank_are_found_out_and_the_model_computes_what_it_did(thinned):
    model, thinner, report = thinned
    ranks = {x.layer: (x.method, x.ranks) for x in report.layers if x.method}
    assert ranks == {
        "wide": ("tucker2", (2, 2)),
        "strided": ("tucker2", (2, 2)),
        "pointwise": ("svd", (2,)),
        "hidden": ("svd", (2,)),
        "head": ("svd", (2,)),
    }
    assert all(x.error < 1e-3 for x in report.layers)
    x = RNG.normal(size=(5, 8, 8, 3)).astype("f4")
    np.testing.assert_allclose(thinner(x), model(x), rtol=1e-3, atol=1e-3)
    assert thinner.output_names == model.output_names and thinner.input_names == model.input_names
    assert thinner.get_compile_config()["metrics"] == ["accuracy"]


def multiplications(model):
    """By each kernel's elements and how often the layer's output says that it was applied."""
    count = 0
    for layer in model.layers:
        if layer.weights:
            kernel = layer.depthwise_kernel if isinstance(layer, layers.DepthwiseConv2D) else layer.kernel
            count += int(np.prod(kernel.shape)) * int(np.prod(layer.output_shape[1:-1]))
    return count


@pytest.mark.parametrize("conv", ["tucker2", "spatial"])
def test_the_report_counts_what_the_models_hold(images, conv):
    model = convnet()
    thinner, report = factorize(model, images, config(EnergyRank(energy=0.5), conv=conv, min_saving=0.0))
    depthwise = 9 * 24 * 4
    assert (report.macs + depthwise, report.macs_after + depthwise) == (multiplications(model), multiplications(thinner))
    assert {x.method for x in report.layers} == {"svd", conv, None}
    saved = sum(x.weights - x.weights_after for x in report.layers)
    kernels = [sum(w.shape.num_elements() for w in m.weights if "kernel" in w.name) for m in (model, thinner)]
    assert kernels[0] - kernels[1] == saved > 0


def test_the_flatbuffer_of_a_factorized_model_is_smaller(thinned, tmp_path):
    sizes = []
    for i, model in enumerate(thinned[:2]):
        from_keras_model(model).save(str(tmp_path / str(i)))
        sizes.append(len(convert(str(tmp_path / str(i)))))
    assert sizes[1] < 0.6 * sizes[0]


def test_what_is_left_has_a_reason(thinned):
    reasons = {x.layer: x.reason for x in thinned[2].layers}
    assert "DepthwiseConv2D" in reasons["depthwise"] and "constraint" in reasons["constrained"]
    assert reasons["wide"] == ""


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_budget_of_multiplications_is_kept_and_used(images, share):
    _, report = factorize(convnet(), images, config(MacBudget(share=share), min_saving=0.0))
    chosen = [x for x in report.layers if x.layer not in ("depthwise", "constrained")]
    kept = sum(x.macs_after for x in chosen) / sum(x.macs for x in chosen)
    assert share - 0.1 < kept <= share


def test_a_layer_that_would_save_too_little_is_left(images):
    _, report = factorize(convnet(), images, config(EnergyRank(energy=0.4), min_saving=0.6))
    for layer in report.layers:
        assert layer.macs_after <= 0.4 * layer.macs or (layer.method is None and layer.macs_after == layer.macs)
    assert any("saves too little" in layer.reason for layer in report.layers)


def test_fine_tuning_brings_back_what_the_truncation_lost():
    values = RNG.normal(size=(600, 16)).astype("f4")
    labels = (values @ RNG.normal(size=(16, 3))).argmax(axis=1)
    model = tf_keras.Sequential([layers.InputLayer((16,), name="x"), layers.Dense(48, "relu"), layers.Dense(48, "relu"), layers.Dense(3)])
    model.compile(tf_keras.optimizers.Adam(0.01), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(values, labels, epochs=20, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": values}, labels))
    model.evaluate(values, labels, verbose=0)
    rank = EnergyRank(energy=0.4)
    still, _ = factorize(model, dataset, config(rank))
    trained, _ = factorize(model, dataset, config(rank, fine_tuning=STILL.model_copy(update={"learning_rate": 0.01, "epochs": 10})))
    float_loss, still_loss, trained_loss = (m.evaluate(values, labels, verbose=0)[0] for m in (model, still, trained))
    assert trained_loss < (still_loss + float_loss) / 2


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"layers": ("conv*",)}, r"pattern 'conv\*' matches no layer of model 'net'"),
        ({"rank": EnergyRank(energy=1.0)}, r"no layer can be factorized with a saving \(wide: .*saves too little"),
        ({"layers": ("depthwise",)}, "only Dense and Conv2D"),
        ({"rank": MacBudget(share=0.001)}, "even at rank 1 the selected layers keep"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_why(images, values, text):
    with pytest.raises(EdgeError, match=text) as error:
        factorize(convnet(), images, config(**values))
    assert "\n" not in str(error.value)


def test_a_layer_that_is_called_twice_is_factorized_once_and_counted_twice_unless_its_inputs_differ_in_size():
    a, b, small = tf_keras.Input((8, 8, 3), name="a"), tf_keras.Input((8, 8, 3), name="b"), tf_keras.Input((4, 4, 3), name="small")
    twice = layers.Conv2D(24, 3, padding="same", name="twice")
    sizes = layers.Conv2D(24, 3, padding="same", name="sizes")
    pool = layers.GlobalAveragePooling2D()
    x = layers.concatenate([pool(twice(a)), pool(twice(b)), pool(sizes(a)), pool(sizes(small))])
    model = tf_keras.Model([a, b, small], layers.Dense(2, name="head")(x))
    model.compile("sgd", "mean_squared_error")
    data = {"a": RNG.normal(size=(8, 8, 8, 3)), "b": RNG.normal(size=(8, 8, 8, 3)), "small": RNG.normal(size=(8, 4, 4, 3))}
    data = {name: values.astype("f4") for name, values in data.items()}
    dataset = tf.data.Dataset.from_tensor_slices((data, RNG.normal(size=(8, 2)).astype("f4")))
    thinner, report = factorize(model, dataset, config(EnergyRank(energy=0.5), layers=("twice", "sizes")))
    found = {x.layer: x for x in report.layers}
    assert found["twice"].macs == 2 * 64 * 9 * 3 * 24 and found["twice"].method == "tucker2"
    assert found["sizes"].method is None and "inputs of 2 sizes" in found["sizes"].reason
    assert len(thinner.get_layer("twice_core").inbound_nodes) == 2


def test_random_kernels_have_the_ranks_that_numpy_gives_them():
    kernel = RNG.normal(size=(3, 2, 4, 5))
    assert [m.shape for m in channel_matrices(kernel)] == [(4, 30), (5, 24)]
    assert spatial_matrix(kernel).shape == (12, 10)
    assert spatial_matrix(kernel)[2 * 4 + 1, 1 * 5 + 3] == kernel[2, 1, 1, 3]

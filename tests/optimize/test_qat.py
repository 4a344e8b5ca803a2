"""Quantization-aware training: what it keeps, asserted on the flatbuffer that comes of it, and which layers stay float, and why."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.litert import inspect
from tfx_edge.litert.convert import _child as convert_here  # TensorFlow is loaded already, so it needs no process of its own
from tfx_edge.litert.plan import make_trained_plan
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.optimize.qat.folding import fold_norms
from tfx_edge.optimize.qat.selection import choose_layers
from tfx_edge.optimize.qat.splitting import split_separable
from tfx_edge.schemas import ClusteringConfig, EdgeError, FineTuningConfig, QatConfig, QuantizationConfig
from tfx_edge.schemas.training import EarlyStopping

FINE_TUNING = FineTuningConfig(label_key="y", epochs=3, batch_size=32, learning_rate=5e-4)


def qat(**fields):
    return QatConfig(fine_tuning=FINE_TUNING, **fields)


def images(count=256):
    """Bright above or bright below."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, count)
    pixels = rng.uniform(0, 0.6, (count, 8, 8, 1)).astype(np.float32)
    pixels[labels == 0, :4] += 0.2
    pixels[labels == 1, 4:] += 0.2
    return {"image": pixels * 20}, labels  # activations far above 6, where tfmot's ranges start


def dataset():
    return tf.data.Dataset.from_tensor_slices(images())


def pruned(model, share=0.6):
    for layer in model.layers:
        if layer.name in ("conv", "wide", "hidden", "head"):
            kernel, *rest = layer.get_weights()
            kernel[np.abs(kernel) < np.quantile(np.abs(kernel), share)] = 0
            layer.set_weights([kernel, *rest])
    return model


@pytest.fixture(scope="module")
def model():
    """Two convolutions, the first with a BatchNormalization of which some scales are negative; kernels 60 % zero."""
    tf_keras.utils.set_random_seed(7)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2D(6, 3, use_bias=False, name="conv")(inputs)
    x = layers.BatchNormalization(momentum=0.5, gamma_initializer=tf_keras.initializers.RandomUniform(-1, 2, seed=3), name="norm")(x)
    x = layers.Conv2D(8, 3, activation="relu", name="wide")(layers.ReLU(name="relu")(x))
    x = layers.Dense(12, "relu", name="hidden")(layers.Flatten(name="flat")(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(x), name="images")
    model.compile(tf_keras.optimizers.Adam(0.003), tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(*images(), epochs=6, verbose=0)
    pruned(model)
    model.fit(*images(), epochs=1, verbose=0)
    return pruned(model)


@pytest.fixture(scope="module")
def clustered(model):
    return cluster(model, dataset(), ClusteringConfig(clusters={"*": 8}, fine_tuning=FINE_TUNING))[0]


@pytest.fixture(scope="module")
def trained(model):
    return train_quantized(model, dataset(), qat())


@pytest.fixture(scope="module")
def exported(tmp_path_factory, trained):
    return flatbuffer(tmp_path_factory.mktemp("trained"), trained[0], "int8")


def flatbuffer(folder, model, *io):
    saved = folder / "saved"
    if not saved.exists():
        model.save(saved, save_format="tf")
    assert convert_here(str(saved), str(folder), *io) == 0, (folder / "refusal.txt").read_text()
    return Path(folder, "model.tflite").read_bytes()


def kernels(model_bytes):
    """Integer weights of a flatbuffer's convolutions and dense layers in order, their output channel first."""
    parsed = inspect.parse(model_bytes)
    graph, found = parsed.subgraphs[0], []
    for op in graph.operators:
        if inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) in ("CONV_2D", "FULLY_CONNECTED"):
            tensor = graph.tensors[op.inputs[1]]
            dtype = {0: np.float32, 9: np.int8}[tensor.type]
            found.append(np.frombuffer(bytes(parsed.buffers[tensor.buffer].data), dtype).reshape(tensor.shape))
    return found


def accuracy(model_bytes, output):
    features, labels = images()
    return float((Runner(model_bytes)(features)[output].argmax(-1) == labels).mean())


def test_sparsity_is_kept_to_the_last_weight_of_the_flatbuffer(exported, model, trained):
    _, report = trained
    assert report.technique == "PQAT"
    integers = kernels(exported)
    for name, kernel in zip(("conv", "wide", "hidden", "head"), integers, strict=True):
        was_zero = np.moveaxis(model.get_layer(name).get_weights()[0] == 0, -1, 0)
        assert was_zero.mean() > 0.55 and not kernel[was_zero.reshape(kernel.shape)].any(), name
        assert np.abs(kernel).max() == 127, name
    told = {layer.layer: layer for layer in report.layers}
    assert told["wide"].kept == ("sparsity",) and told["wide"].zeros == told["wide"].zeros_before > 0


def test_zeros_and_clusters_are_kept_to_the_last_weight_of_the_flatbuffer(tmp_path, clustered):
    quantized, report = train_quantized(clustered, dataset(), qat())
    assert report.technique == "PCQAT"
    built = flatbuffer(tmp_path, quantized, "int8")
    conv, *others = kernels(built)
    for name, kernel in zip(("wide", "hidden", "head"), others, strict=True):
        assert 3 <= np.unique(kernel).size <= 8, name
    assert all(np.unique(channel).size <= 8 for channel in conv)
    negative = quantized.get_layer("norm").layer.gamma.numpy() < 0
    assert negative.any() and np.unique(conv[~negative]).size <= 8  # a negative scale negates its channel when it is folded
    for name, kernel in zip(("conv", "wide", "hidden", "head"), (conv, *others), strict=True):
        was_zero = np.moveaxis(clustered.get_layer(name).get_weights()[0] == 0, -1, 0)
        assert not kernel[was_zero.reshape(kernel.shape)].any(), name
    assert accuracy(built, "head") > 0.9


def test_the_flatbuffer_computes_in_integers_alone_and_as_the_model_says(tmp_path, exported, trained):
    (quantized, _), built = trained, exported
    assert set(inspect.operators(built)) == {"CONV_2D", "RESHAPE", "FULLY_CONNECTED"}  # the norm is folded
    assert {t.dtype for t in (*Runner(built).signature.inputs, *Runner(built).signature.outputs)} == {"int8"}
    assert quantized.output_names == ["head"]
    emulated = quantized.predict(images()[0], verbose=0)
    got = Runner(built)(images()[0])["head"]
    assert np.abs(got - emulated).max() < 0.01 * np.ptp(emulated)  # two integers
    assert accuracy(built, "head") > 0.9
    assert {"QUANTIZE", "DEQUANTIZE"} <= set(inspect.operators(flatbuffer(tmp_path, quantized, "float32")))


def test_the_input_stays_as_it_is_and_the_norm_is_frozen(model, trained):
    quantized, report = trained
    assert [layer.emulated for layer in report.layers] == [True] * 7
    np.testing.assert_array_equal(quantized.get_layer("norm").layer.moving_mean, model.get_layer("norm").moving_mean)
    assert quantized.loss is not None
    again, _ = train_quantized(model, dataset(), qat())
    assert all(np.array_equal(a, b) for a, b in zip(quantized.get_weights(), again.get_weights(), strict=True))


@pytest.mark.parametrize(("preserve", "technique"), [("nothing", "QAT"), ("sparsity", "PQAT"), ("clusters", "CQAT")])
def test_what_to_keep_can_be_named(clustered, preserve, technique):
    _, report = train_quantized(clustered, dataset().take(64), qat(preserve=preserve))
    hidden = next(layer for layer in report.layers if layer.layer == "hidden")
    assert report.technique == technique
    assert (hidden.zeros == hidden.zeros_before, hidden.values <= 8) == (preserve == "sparsity", preserve == "clusters")


def test_a_norm_behind_a_dense_layer_is_folded_before_training(tmp_path):
    tf_keras.utils.set_random_seed(1)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Dense(16, use_bias=False, name="hidden")(layers.Flatten(name="flat")(inputs))
    x = layers.ReLU(name="relu")(layers.BatchNormalization(momentum=0.5, name="norm")(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(x))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(*images(), epochs=3, verbose=0)
    features = images()[0]["image"]
    np.testing.assert_allclose(fold_norms(model, ["norm"])(features), model(features), rtol=1e-3, atol=1e-3)
    quantized, _ = train_quantized(model, dataset(), qat())
    built = flatbuffer(tmp_path, quantized, "int8")
    assert "MUL" not in inspect.operators(built) and all(kernel.dtype == np.int8 for kernel in kernels(built))
    assert len(kernels(built)) == 2


class Doubled(layers.Layer):
    """A layer of a user's."""

    def call(self, inputs):
        return inputs * 2.0


def chosen(build):
    inputs = layers.Input((6, 4), name="a")
    model = tf_keras.Model(inputs, build(inputs))
    return model, {c.layer: c.reason for c in choose_layers(model, qat())}


@pytest.mark.parametrize(
    "layer",
    [
        layers.Conv1D(8, 3, name="odd"),
        layers.LSTM(5, name="odd"),
        layers.LayerNormalization(name="odd"),
        layers.Normalization(mean=1.0, variance=4.0, name="odd"),
        layers.Rescaling(2.0, name="odd"),
        Doubled(name="odd"),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_without_an_8_bit_form_stay_float_with_the_reason(layer):
    _, reasons = chosen(lambda x: layers.Dense(3, name="head")(layers.Flatten(name="flat")(layer(x))))
    assert reasons == {"odd": f"tfmot has no 8-bit form of the layer type {type(layer).__name__}", "flat": "", "head": ""}


def test_what_follows_a_float_layer_is_quantized_as_its_output_gets_a_range(tmp_path):
    model, _ = chosen(lambda x: layers.Dense(3)(Doubled()(layers.Flatten()(layers.Normalization(mean=1.0, variance=4.0)(x)))))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    values = np.random.default_rng(0).normal(size=(32, 6, 4)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"a": values}, np.arange(32) % 3))
    quantized, _ = train_quantized(model, data, QatConfig(fine_tuning=FINE_TUNING.model_copy(update={"epochs": 1})))
    assert np.abs(quantized(values).numpy() - model(values).numpy()).max() < 0.1 * np.ptp(model(values).numpy())
    [kernel] = kernels(flatbuffer(tmp_path, quantized, "int8"))
    assert kernel.dtype == np.int8


def test_a_layer_behind_one_whose_output_gets_no_range_stays_float():
    inputs = layers.Input((6, 4), name="a")
    attended = layers.MultiHeadAttention(2, 4, name="odd")(inputs, inputs)
    x = layers.Flatten(name="flat")(attended)
    reasons = {c.layer: c.reason for c in choose_layers(tf_keras.Model(inputs, layers.Dense(3, name="head")(x)), qat())}
    assert reasons["flat"] == "its input comes from the float layer 'odd', whose output tfmot can't give a range"
    assert reasons["head"] == ""  # the output of flat gets a range


def test_a_dense_layer_on_more_than_vectors_stays_float():
    _, reasons = chosen(lambda x: layers.Dense(3, name="head")(layers.Flatten(name="flat")(layers.Dense(4, name="steps")(x))))
    assert reasons == {"steps": "its input has 3 dimensions, and the converter makes a float product of that", "flat": "", "head": ""}


@pytest.mark.parametrize(
    ("names", "text"), [(("hiden",), "pattern 'hiden' matches no layer"), (("flat", "relu"), "no layer with weights .* can be quantized")]
)
def test_patterns_that_select_nothing_are_refused(model, names, text):
    with pytest.raises(EdgeError, match=text) as error:
        train_quantized(model, dataset(), qat(layers=names))
    assert "\n" not in str(error.value)


FLOAT, INT8 = 0, 9


@pytest.mark.parametrize(
    ("names", "types"),
    [
        (("hidden", "head"), [FLOAT, FLOAT, INT8, INT8]),
        (("conv", "norm", "relu", "wide"), [INT8, INT8, FLOAT, FLOAT]),  # not by dynamic range either
        (("conv", "norm", "relu", "wide", "flat", "head"), [INT8] * 4),  # the converter quantizes hidden unasked
    ],
    ids=["end", "start", "around"],
)
def test_patterns_select_layers(model, tmp_path, names, types):
    quantized, report = train_quantized(model, dataset().take(64), qat(layers=names))
    assert [layer.layer for layer in report.layers if layer.emulated] == list(names)
    assert model.get_layer("hidden").kernel.shape.num_elements() > 1024  # what the converter holds to be large
    built = flatbuffer(tmp_path, quantized, "float32")
    assert [kernel.dtype for kernel in kernels(built)] == [{FLOAT: np.float32, INT8: np.int8}[kind] for kind in types]
    plan = make_trained_plan(flatbuffer(tmp_path, quantized), built, QuantizationConfig(qat=qat(layers=names)))
    weighted = [op.op for op in plan.float_ops if op.op in ("CONV_2D", "FULLY_CONNECTED")]
    assert len(weighted) == types.count(FLOAT) and all("qat.json" in op.reason for op in plan.float_ops)


def test_early_stopping_by_other_examples_keeps_the_best_epoch_and_the_zeros(model):
    features, labels = images()
    against = tf.data.Dataset.from_tensor_slices((features, 1 - labels))  # the better the training, the worse these
    stopping = FINE_TUNING.model_copy(update={"epochs": 9, "early_stopping": EarlyStopping(patience=1)})
    stopped, _ = train_quantized(model, dataset(), QatConfig(fine_tuning=stopping), validation=against)
    once, _ = train_quantized(model, dataset(), QatConfig(fine_tuning=FINE_TUNING.model_copy(update={"epochs": 1})))
    assert all(np.array_equal(a, b) for a, b in zip(stopped.get_weights(), once.get_weights(), strict=True))
    assert not stopped.get_layer("hidden").layer.kernel.numpy()[model.get_layer("hidden").kernel.numpy() == 0].any()


def separable(name="sep"):
    """A separable convolution and a norm behind a convolution that has the name which Keras gives the next one."""
    tf_keras.utils.set_random_seed(5)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2D(4, 3, name="conv2d")(inputs)
    x = layers.SeparableConv2D(12, 3, strides=2, padding="same", depth_multiplier=2, activation=None, name=name)(x)
    x = layers.ReLU(name="relu")(layers.BatchNormalization(momentum=0.5, name="norm")(x))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(layers.Flatten(name="flat")(x)))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(*images(), verbose=0)
    return model


def test_a_separable_convolution_is_quantized_as_two_and_keeps_its_clusters(tmp_path):
    tf_keras.backend.clear_session()  # so that the next Conv2D is called conv2d, as in a process that loaded the model
    model = separable()
    features = images()[0]["image"]
    np.testing.assert_allclose(split_separable(model, ["sep"])(features), model(features), rtol=1e-4, atol=1e-4)
    shared, _ = cluster(model, dataset(), ClusteringConfig(clusters={"*": 6}, fine_tuning=FINE_TUNING.model_copy(update={"epochs": 1})))
    quantized, report = train_quantized(shared, dataset(), qat())
    told = {layer.layer: layer for layer in report.layers}
    assert list(told) == ["conv2d", "sep", "norm", "relu", "flat", "head"] and all(layer.emulated for layer in report.layers)
    assert told["sep"].values_before == told["sep"].values == 6 and told["sep"].kept == ("clusters",)
    built = flatbuffer(tmp_path, quantized, "int8")
    assert set(inspect.operators(built)) == {"CONV_2D", "DEPTHWISE_CONV_2D", "RESHAPE", "FULLY_CONNECTED"}
    assert [np.unique(kernel).size <= 6 for kernel in kernels(built)] == [True] * 3
    emulated = quantized.predict(features, verbose=0)
    assert np.abs(Runner(built)({"image": features})["head"] - emulated).max() < 0.01 * np.ptp(emulated)


def test_a_transposed_convolution_stays_float_as_keras_cannot_save_what_tfmot_makes_of_it(tmp_path):
    tf_keras.utils.set_random_seed(2)
    inputs = layers.Input((8, 8, 1), name="image")
    x = layers.Conv2DTranspose(4, 3, name="up")(layers.Conv2D(4, 3, name="conv")(inputs))
    model = tf_keras.Model(inputs, layers.Dense(2, name="head")(layers.Flatten(name="flat")(x)))
    model.compile("adam", tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    quantized, report = train_quantized(model, dataset().take(64), qat())
    reasons = {layer.layer: layer.reason for layer in report.layers}
    assert reasons == {"conv": "", "up": "Keras can't save tfmot's 8-bit form of a Conv2DTranspose", "flat": "", "head": ""}
    assert "TRANSPOSE_CONV" in inspect.operators(flatbuffer(tmp_path, quantized, "int8"))

"""A prepared model computes the same, on operators that LiteRT has, and every technique reaches its layers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tfx_edge.litert import inspect
from tfx_edge.litert.convert import convert
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.optimize.float_model.keras_model import from_keras_model, load_keras_model
from tfx_edge.optimize.float_model.made_up_features import make_examples
from tfx_edge.optimize.preparation import prepare
from tfx_edge.optimize.pruning import prune
from tfx_edge.schemas import EdgeError, FineTuningConfig, PruningConfig, QuantizationConfig

layers = tf_keras.layers


def taxi() -> tf_keras.Model:
    """Wide and deep as TFX's taxi example: scaled floats, encoded integers, a lookup and buckets."""
    tf_keras.utils.set_random_seed(5)
    fare, age = tf_keras.Input((1,), name="fare"), tf_keras.Input((1,), name="age")
    hour, code = tf_keras.Input((1,), name="hour", dtype="int32"), tf_keras.Input((1,), name="code", dtype="int64")
    zones, weights = tf_keras.Input((3,), name="zones", dtype="int64"), tf_keras.Input((3,), name="weights")
    scaled = layers.Normalization(name="scaled")
    scaled.adapt(np.array([[10.0], [30.0], [50.0]]))
    lookup = layers.IntegerLookup(name="lookup", output_mode="one_hot")
    lookup.adapt([[5], [9], [9], [11]])
    encoded = [
        scaled(fare),
        layers.Rescaling(1 / 50, -1, name="rescaled")(age),
        layers.CategoryEncoding(24, "one_hot", name="one_hot")(hour),
        layers.CategoryEncoding(5, "multi_hot", name="multi_hot")(zones),
        layers.CategoryEncoding(5, "count", name="count")(zones, count_weights=weights),
        lookup(code),
        layers.Discretization([1.0, 5.0, 20.0], output_mode="one_hot", name="buckets")(age),
    ]
    x = layers.Dropout(0.1)(layers.Dense(16, "relu", name="deep")(layers.Concatenate()(encoded)))
    model = tf_keras.Model([fare, age, hour, code, zones, weights], layers.Dense(1, "sigmoid", name="tips")(x), name="taxi")
    model.compile("adam", "binary_crossentropy")
    return model


def transfer() -> tf_keras.Model:
    """A frozen convnet, nested behind preprocessing, with a head that is trained."""
    tf_keras.utils.set_random_seed(6)
    image = tf_keras.Input((12, 12, 3))
    x = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(8, 3, strides=2, name="conv")(image)))
    x = layers.SeparableConv2D(8, 3, name="separable")(x)
    base = tf_keras.Model(image, layers.GlobalAveragePooling2D()(x), name="base")
    base.trainable = False
    outer = tf_keras.Input((12, 12, 3), name="image")
    x = base(layers.RandomFlip(seed=1, name="random_flip")(outer) / 127.5 - 1.0, training=False)
    model = tf_keras.Model(
        outer,
        tf_keras.Sequential([layers.Dense(8, "relu", name="hidden"), layers.Dense(3, "softmax", name="scores")], name="head")(x),
        name="transfer",
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def examples(model: tf_keras.Model, count: int = 64) -> dict[str, Any]:
    return make_examples(taxi() if model.name == "taxi" else model, count, seed=9)


def flatbuffer(model: tf_keras.Model, folder: Path) -> bytes:
    from_keras_model(model).save(str(folder))
    return convert(str(folder))


def operators(model: bytes) -> list[str]:
    parsed = inspect.parse(model)
    return [inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) for graph in parsed.subgraphs for op in graph.operators]


def int8(model: bytes, features: dict[str, Any]) -> bytes:
    config, ranges = QuantizationConfig(scheme="int8"), RangeCollector(model)(features)
    return apply_plan(model, make_plan(model, config, ranges, "digest"), ranges)


def output(model: Any, features: dict[str, Any]) -> np.ndarray:
    predicted = model(features) if isinstance(model, Runner) else from_keras_model(model).predict(features)
    return next(iter(predicted.values()))


@pytest.mark.parametrize("build", [taxi, transfer])
def test_a_prepared_model_is_equal_pruned_everywhere_converted_to_builtins_and_quantized(build: Any, tmp_path: Path) -> None:
    model = build()
    prepared, report = prepare(model)
    features = make_examples(model, 64, seed=9)
    np.testing.assert_allclose(output(prepared, features), output(model, features), rtol=1e-5, atol=1e-6)
    assert (prepared.input_names, prepared.output_names) == (model.input_names, model.output_names)
    assert report.rewrites and report.max_abs_difference <= 1e-5 and report.examples == 16 and not report.real_examples

    labels = np.arange(64) % 2
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    tuning = FineTuningConfig(label_key="label", epochs=2, batch_size=16)
    prepared.trainable = True  # frozen layers would be left
    pruned, sparsity = prune(prepared, dataset, PruningConfig(target_sparsity=0.5, fine_tuning=tuning))
    kernels = {layer.layer for layer in sparsity.layers if layer.pruned}
    assert kernels == ({"deep", "tips"} if model.name == "taxi" else {"conv", "separable", "hidden", "scores"})
    assert sparsity.sparsity >= 0.45

    floating = flatbuffer(pruned, tmp_path / "pruned")
    np.testing.assert_allclose(output(Runner(floating), features), output(pruned, features), rtol=1e-4, atol=1e-5)
    quantized = int8(floating, features)
    assert np.abs(output(Runner(quantized), features) - output(pruned, features)).mean() < 0.05


def test_a_prepared_model_needs_no_rewrite_and_stays_itself_loaded_or_not(tmp_path: Path) -> None:
    prepared, report = prepare(taxi())
    again, nothing = prepare(prepared)
    assert again is prepared and not nothing.changed and report.changed
    prepared.save(tmp_path, save_format="tf")
    loaded = load_keras_model(str(tmp_path))
    assert prepare(loaded)[0] is loaded
    assert loaded.loss is not None, "compiled as the original"


def test_preparing_twice_gives_the_same_model_and_changes_nothing_in_the_original() -> None:
    model = taxi()
    before = [w.copy() for w in model.get_weights()]
    (a, report_a), (b, report_b) = prepare(model), prepare(model)
    assert report_a == report_b and a.get_config() == b.get_config()
    for have, want in zip([*model.get_weights(), *a.get_weights()], [*before, *b.get_weights()], strict=True):
        np.testing.assert_array_equal(have, want)


def test_the_report_names_each_rewritten_layer_and_those_that_stay() -> None:
    _, report = prepare(taxi())
    assert {r.layer for r in report.rewrites} == {"scaled", "rescaled", "one_hot", "multi_hot", "count", "lookup", "buckets"}
    _, report = prepare(transfer())
    assert {r.type for r in report.rewrites} == {"Functional", "TFOpLambda", "Sequential"}
    assert [(left.layer, "training alone" in left.reason) for left in report.left] == [("random_flip", True)]


def test_given_examples_are_what_is_compared_and_a_difference_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = taxi()
    _, report = prepare(model, examples(model, 7))
    assert report.real_examples and report.examples == 7
    from tfx_edge.optimize.graph.preprocessing import Affine

    monkeypatch.setattr(Affine, "call", lambda self, inputs: tf.cast(inputs, tf.float32))
    with pytest.raises(EdgeError, match="after rewriting .*'scaled' \\(Normalization\\).* output 'tips' differs by"):
        prepare(model)


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("mask", [None, -1])
def test_a_vocabulary_of_integers_keeps_its_indices(mode: str, mask: int | None) -> None:
    settings = {"mask_token": mask, "pad_to_max_tokens": mode == "count", "max_tokens": 9 if mode == "count" else None}
    lookup = layers.IntegerLookup(vocabulary=[30, 4, 50], output_mode=mode, **settings)
    inputs = tf_keras.Input((1,) if mode == "one_hot" else (4,), name="x", dtype="int64")
    model = tf_keras.Model(inputs, lookup(inputs))
    x = np.array([[30, 4, 50, 2**32 + 4], [-1, 0, 30, 30], [4, 4, -1, 50]])[:, : inputs.shape[1]]
    prepared, report = prepare(model, {"x": x})
    assert [r.type for r in report.rewrites] == ["IntegerLookup"]
    np.testing.assert_array_equal(prepared(x), model(x))


@pytest.mark.parametrize(
    "settings", [{"axis": None}, {"axis": (1, 2)}, {"axis": 1}, {"axis": -1, "invert": True}, {"mean": 3.0, "variance": 4.0}]
)
def test_normalization_along_any_axis_is_affine(settings: dict[str, Any]) -> None:
    inputs = tf_keras.Input((2, 3), name="x")
    layer = layers.Normalization(**settings)
    x = np.random.default_rng(0).normal(1000, 3, (40, 2, 3)).astype(np.float32)
    if "mean" not in settings:
        layer.adapt(x)
    model = tf_keras.Model(inputs, layer(inputs))
    prepared, _ = prepare(model, {"x": x})
    assert prepared(x).shape == model(x).shape
    np.testing.assert_allclose(prepared(x), model(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "dtype", "cure"),
    [
        (lambda: layers.StringLookup(vocabulary=["a"]), "string", "compute_and_apply_vocabulary"),
        (lambda: layers.Hashing(4), "int64", "hash_strings"),
        (lambda: layers.TextVectorization(vocabulary=["a"], output_sequence_length=3), "string", "compute_and_apply_vocabulary"),
        (lambda: layers.IntegerLookup(vocabulary=[1], num_oov_indices=2), "int64", "preprocessing_fn"),
    ],
)
def test_a_layer_that_no_device_runs_is_named_with_its_cure_wherever_it_is(layer: Any, dtype: str, cure: str) -> None:
    inner = tf_keras.Input((1,), dtype=dtype)
    made = layer()
    nested = tf_keras.Model(inner, made(inner), name="nested")
    outer = tf_keras.Input((1,), name="x", dtype=dtype)
    with pytest.raises(EdgeError, match=f"layer '{made.name}' \\({type(made).__name__}\\).*use .*{cure}") as error:
        prepare(tf_keras.Model(outer, nested(outer)))
    assert len(str(error.value).splitlines()) == 1


def sequence_model(recurrent: layers.Layer, masked: bool, steps: int | None = 6) -> tf_keras.Model:
    tokens = tf_keras.Input((steps,), name="tokens", dtype="int64")
    embedded = layers.Embedding(20, 6, mask_zero=masked, name="embedding")(tokens)
    return tf_keras.Model(tokens, layers.Dense(2, name="head")(recurrent(embedded)), name="text")


def tokens(count: int = 7, steps: int = 6) -> dict[str, Any]:
    ids = np.random.default_rng(2).integers(1, 20, (count, steps))
    ids[1, 3:] = 0
    return {"tokens": ids}


def test_an_lstm_becomes_one_operator_with_a_batch_of_one(tmp_path: Path) -> None:
    model = sequence_model(layers.Bidirectional(layers.LSTM(4)), masked=False)
    prepared, report = prepare(model)
    assert prepared is model and [left.reason for left in report.left] == ["recurrent: converts with a batch of one example"]
    from_keras_model(model).predict(tokens())  # leaves a trace for any size behind, which must not be taken
    floating = flatbuffer(model, tmp_path)
    assert operators(floating).count("UNIDIRECTIONAL_SEQUENCE_LSTM") == 2 and "WHILE" not in operators(floating)
    np.testing.assert_allclose(output(Runner(floating), tokens()), output(model, tokens()), rtol=1e-5, atol=1e-6)


def test_a_recurrent_model_without_keras_metadata_converts_too(tmp_path: Path) -> None:
    model = sequence_model(layers.LSTM(4), masked=False)
    tf.saved_model.save(model, str(tmp_path / "trained"))
    loaded = load_float_model(str(tmp_path / "trained"))
    assert loaded.keras_model is None
    loaded.save(str(tmp_path / "plain"))
    floating = convert(str(tmp_path / "plain"))
    np.testing.assert_allclose(output(Runner(floating), tokens()), output(model, tokens()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("recurrent", "masked"),
    [(lambda: layers.GRU(4), False), (lambda: layers.Bidirectional(layers.LSTM(4)), True)],
)
def test_a_short_loop_is_unrolled_and_quantizes(recurrent: Any, masked: bool, tmp_path: Path) -> None:
    model = sequence_model(recurrent(), masked)
    prepared, report = prepare(model, tokens())
    assert [r.became for r in report.rewrites] == ["itself, unrolled"] and prepare(prepared)[0] is prepared
    floating = flatbuffer(prepared, tmp_path)
    assert "WHILE" not in operators(floating)
    np.testing.assert_allclose(output(Runner(floating), tokens()), output(model, tokens()), rtol=1e-5, atol=1e-6)
    quantized = apply_plan(floating, make_plan(floating, QuantizationConfig(scheme="dynamic_range")))
    np.testing.assert_allclose(output(Runner(quantized), tokens()), output(model, tokens()), atol=0.02)


@pytest.mark.parametrize("steps", [None, 100])
def test_a_long_loop_stays_and_says_what_follows(steps: int | None) -> None:
    model = sequence_model(layers.GRU(4), masked=False, steps=steps)
    prepared, report = prepare(model)
    assert prepared is model and "can't be quantized; shorten" in report.left[0].reason


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_examples_that_arent_finite_are_named_by_their_feature(value):
    model = taxi()
    examples = {name: np.array(values) for name, values in make_examples(model).items()}
    examples["fare"][0] = value
    with pytest.raises(EdgeError, match="feature 'fare' holds 1 NaN or infinite values of") as caught:
        prepare(model, examples)
    assert len(str(caught.value).splitlines()) == 1

"""SavedModels of other frameworks: a signature of any name, a fixed batch, names that neither Python nor TensorFlow takes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfx_edge.optimize.float_model import FloatModel, load_float_model, save_models
from tfx_edge.schemas import EdgeError, Signature, TensorSpec

SHAPE: Any = [None, 2]


def saved(folder: Path, function: Callable[..., Any], shapes: dict[str, Any], names: tuple[str, ...] = ("serving_default",)) -> str:
    """A plain tf.Module with one signature for each of some names."""
    module = tf.Module()
    specs = {name: tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()}
    tf.saved_model.save(module, str(folder), signatures={name: tf.function(function).get_concrete_function(**specs) for name in names})
    return str(folder)


def rows(count: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(2 * count, dtype=np.float32).reshape(count, 2)}


def test_the_only_signature_stands_for_the_model_whatever_its_name(tmp_path: Path) -> None:
    model = load_float_model(saved(tmp_path, lambda x: {"y": x * 2.0}, {"x": SHAPE}, names=("infer",)))
    np.testing.assert_array_equal(model.predict(rows(3))["y"], rows(3)["x"] * 2)


def test_of_several_signatures_none_is_taken_for_the_model_but_each_by_its_name(tmp_path: Path) -> None:
    path = saved(tmp_path, lambda x: {"y": x * 2.0}, {"x": SHAPE}, names=("infer", "embed"))
    with pytest.raises(EdgeError, match="no signature 'serving_default'; of embed, infer, name those to export in ConversionConfig"):
        load_float_model(path)
    assert load_float_model(path, signature="embed").signature.input_names == ("x",)


@pytest.mark.parametrize("count", [1, 4, 5, 8, 11])
def test_a_model_that_is_fixed_to_a_batch_predicts_any_number_of_examples(tmp_path: Path, count: int) -> None:
    model = load_float_model(saved(tmp_path, lambda x: {"y": tf.cumsum(x, axis=1)}, {"x": [4, 2]}))
    assert model.batch_size == 4
    np.testing.assert_array_equal(model.predict(rows(count))["y"], np.cumsum(rows(count)["x"], axis=1))


def test_a_model_that_is_fixed_to_a_batch_is_saved_for_it_and_for_no_other(tmp_path: Path) -> None:
    model = load_float_model(saved(tmp_path / "given", lambda x: {"y": x * 2.0}, {"x": [4, 2]}))
    for place, asked in enumerate((None, 4)):
        model.save(str(tmp_path / str(place)), asked)
        signature = tf.saved_model.load(str(tmp_path / str(place))).signatures["serving_default"]
        assert signature.structured_input_signature[1]["x"].shape == [4, 2]
    with pytest.raises(EdgeError, match="batch_size 1: the model takes batches of 4 alone; leave batch_size out"):
        model.save(str(tmp_path / "other"), 1)


def test_an_object_that_can_be_called_on_one_batch_is_fixed_to_it_unless_it_was_traced_for_any(tmp_path: Path) -> None:
    class Scale(tf.Module):
        def __init__(self) -> None:
            self.factor = tf.Variable(2.0)

        @tf.function
        def __call__(self, x: tf.Tensor) -> tf.Tensor:
            return x * self.factor

    for place, (shapes, batch_size) in enumerate({((4, 2),): 4, ((4, 2), (None, 2)): None}.items()):
        module = Scale()
        for shape in shapes:
            module.__call__.get_concrete_function(tf.TensorSpec(shape, tf.float32, name="x"))
        tf.saved_model.save(module, str(tmp_path / str(place)))
        model = load_float_model(str(tmp_path / str(place)))
        assert model.batch_size == batch_size
        np.testing.assert_array_equal(model.predict(rows(6))["output_0"], rows(6)["x"] * 2)
        model.save(str(tmp_path / f"{place} again"))
        np.testing.assert_array_equal(load_float_model(str(tmp_path / f"{place} again")).predict(rows(3))["output_0"], rows(3)["x"] * 2)


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (lambda x: {"y": x * 2.0}, {"x": None}, "tensor 'x' is of any shape"),
        (lambda x, s: {"y": x * s}, {"x": SHAPE, "s": []}, "tensor 's' is a single value"),
        (lambda x: {"y": x, "mean": tf.reduce_mean(x)}, {"x": SHAPE}, "tensor 'mean' is a single value"),
        (lambda x, z: {"y": x, "z": z}, {"x": [4, 2], "z": [2, 2]}, "batches of different sizes, {'x': 4, 'z': 2}"),
    ],
)
def test_a_signature_that_takes_no_batches_is_refused_in_one_line(
    tmp_path: Path, function: Callable[..., Any], shapes: dict[str, Any], message: str
) -> None:
    with pytest.raises(EdgeError, match=message) as error:
        load_float_model(saved(tmp_path, function, shapes))
    assert "\n" not in str(error.value)


NAMES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8),
        st.sampled_from(["self", "class", "A", "a", "a b", "a_b", "a.b", "a/b", "x:0", "_", "7", "input_0000", "name", "größe"]),
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


@settings(max_examples=15, deadline=None)
@given(inputs=NAMES, outputs=NAMES)
@example(inputs=["A", "a"], outputs=["b"])
@example(inputs=["self"], outputs=["a b", "a_b"])
def test_whatever_the_names_a_saved_model_takes_and_gives_what_they_stand_for(
    tmp_path_factory: pytest.TempPathFactory, inputs: list[str], outputs: list[str]
) -> None:
    def function(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: features[inputs[place % len(inputs)]] + float(place) for place, name in enumerate(outputs)}

    def specs(names: list[str]) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(name=name, shape=(None, 2), dtype="float32") for name in names)

    model = FloatModel(Signature(inputs=specs(inputs), outputs=specs(outputs)), function, ())
    folder = str(tmp_path_factory.mktemp("model"))
    save_models({"a signature/ü": model}, folder)
    features = {name: np.full((3, 2), math.pi * place, np.float32) for place, name in enumerate(inputs)}
    expected = {name: features[inputs[place % len(inputs)]] + np.float32(place) for place, name in enumerate(outputs)}
    saved_inputs, saved_outputs = model.saved_names
    signature = tf.saved_model.load(folder).signatures["a signature/ü"]
    given_out = signature(**{saved_inputs[name]: tf.constant(values) for name, values in features.items()})
    for got in (model.predict(features), {name: given_out[saved_outputs[name]].numpy() for name in outputs}):
        assert set(got) == set(outputs)
        for name in outputs:
            np.testing.assert_array_equal(got[name], expected[name])

"""Transform's preprocessing as a function for a device, and as a flatbuffer."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import raw_data
import tensorflow as tf
from numpy.typing import NDArray

from tfx_edge.litert.convert import convert
from tfx_edge.litert.inspect import operators
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.float_model import FloatModel
from tfx_edge.optimize.raw_features import TransformGraph, blame, device_features, plausible_features, preprocessing
from tfx_edge.schemas import EdgeError, TensorSpec

LOWEST = np.iinfo(np.int64).min


def takes(batch: int | None = None, **inputs: Any) -> list[TensorSpec]:
    return [TensorSpec(name=name, shape=(batch, *shape), dtype=dtype) for name, (dtype, *shape) in inputs.items()]


NUMBERS = takes(
    length=("float32", 1),
    mass=("float32", 1),
    density=("float32",),
    shift=("int32", 1),
    window=("float32", 2, 3),
    hour=("float32", 1),
    age=("float32", 1),
    visits=("float32", 1),
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> TransformGraph:
    return TransformGraph(raw_data.transform_graph(tmp_path_factory.mktemp("raw")))


@pytest.fixture(scope="module")
def numbers(graph: TransformGraph) -> FloatModel:
    return preprocessing(graph, NUMBERS)


def flatbuffer(model: FloatModel, folder: Path) -> bytes:
    model.save(str(folder / "saved_model"))
    return convert(str(folder / "saved_model"))


@pytest.fixture(scope="module")
def converted(numbers: FloatModel, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner(flatbuffer(numbers, tmp_path_factory.mktemp("converted")))


def parsed(graph: TransformGraph, count: int = 40, seed: int = 5) -> dict[str, Any]:
    return dict(tf.io.parse_example(tf.constant(raw_data.encoded(raw_data.rows(count, seed))), dict(graph.raw)))


def transformed(graph: TransformGraph, examples: dict[str, Any]) -> dict[str, NDArray[Any]]:
    return {name: value.numpy() for name, value in graph.layer(examples).items()}


def test_the_flatbuffer_makes_of_raw_examples_what_transform_makes_of_them(graph: TransformGraph, converted: Runner) -> None:
    examples = parsed(graph)
    want, have = transformed(graph, examples), converted(device_features(examples))
    assert {spec.name for spec in NUMBERS} == set(have)
    for spec in NUMBERS:
        assert have[spec.name].dtype == spec.dtype
        assert have[spec.name].shape == (40, *spec.shape[1:])
        np.testing.assert_allclose(have[spec.name].reshape(40, -1), want[spec.name].reshape(40, -1), rtol=1e-5, atol=1e-5)
    assert np.isnan(device_features(examples)["age"]).any()
    assert np.ptp(have["shift"]) > 1


def test_an_example_alone_may_lack_what_it_may_lack(graph: TransformGraph, converted: Runner) -> None:
    examples = device_features(parsed(graph, 3))
    examples["age"] = np.float32([[np.nan], [7], [np.nan]])
    examples["visits"] = np.int64([[LOWEST], [LOWEST], [0]])
    for i, (age, visits) in enumerate(((-1.0, 0.0), (7.0, 0.0), (-1.0, 0.0))):
        have = converted({name: values[i : i + 1] for name, values in examples.items()})
        assert (have["age"].item(), have["visits"].item()) == (age, visits)


def test_a_device_feeds_what_the_model_depends_on_and_no_more(graph: TransformGraph, numbers: FloatModel) -> None:
    assert set(numbers.signature.input_names) == {"length", "mass", "window", "hour", "age", "visits"}
    assert preprocessing(graph, takes(density=("float32",))).signature.input_names == ("length", "mass")
    shapes = {spec.name: (spec.shape, spec.dtype) for spec in numbers.signature.inputs}
    assert shapes["length"] == ((None,), "float32")
    assert shapes["window"] == ((None, 6), "float32")
    assert shapes["visits"] == ((None, 1), "int64")


def test_a_model_fixed_to_a_batch_gets_a_preprocessing_fixed_to_it(graph: TransformGraph, tmp_path: Path) -> None:
    fixed = preprocessing(graph, takes(2, mass=("float32", 1), age=("float32", 1)))
    runner = Runner(flatbuffer(fixed, tmp_path))
    assert runner.batch_size == 2
    assert {spec.shape for spec in runner.signature.outputs} == {(2, 1)}
    examples = device_features(parsed(graph, 5))
    np.testing.assert_allclose(runner(examples)["age"], fixed.predict(examples)["age"])


def test_text_is_refused_with_its_feature_its_operators_and_the_cure(graph: TransformGraph) -> None:
    with pytest.raises(EdgeError) as error:
        preprocessing(graph, [*NUMBERS, *takes(word=("int64", 1))])
    assert re.search(r"makes 'word' from 'word' by LookupTableFindV2", str(error.value))
    assert "keep features 'transformed'" in str(error.value)
    assert "'length'" not in str(error.value)


def test_what_the_converter_refuses_is_blamed_on_its_feature(graph: TransformGraph, tmp_path: Path) -> None:
    inputs = takes(code=("int64", 1), mass=("float32", 1), size=("int64", 1))
    with pytest.raises(EdgeError) as refusal:
        flatbuffer(preprocessing(graph, inputs), tmp_path)
    error = str(blame(str(refusal.value), graph, inputs))
    assert re.search(r"makes 'code' from 'code' by [\w, ]*LookupTable[\w, ]*; 'size' from 'mass' by UpperBound, which", error), error
    assert "'mass' from" not in error
    assert "keep features 'transformed'" in error
    assert "\n" not in error


def test_a_refusal_that_names_no_operator_is_handed_on_with_the_cure(graph: TransformGraph) -> None:
    error = str(blame("the converter died", graph, takes(mass=("float32", 1))))
    assert "the converter died" in error
    assert "keep features 'transformed'" in error


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        (takes(height=("float32", 1)), "takes 'height', Transform gives 'age', 'code'"),
        (takes(mass=("int64", 1)), r"takes 'mass' as int64 \(1,\), Transform gives float32 \(1,\)"),
        (takes(window=("float32", 5)), r"takes 'window' as float32 \(5,\), Transform gives float32 \(6,\)"),
    ],
)
def test_a_model_of_other_features_is_refused(graph: TransformGraph, inputs: list[TensorSpec], says: str) -> None:
    with pytest.raises(EdgeError, match=says):
        preprocessing(graph, inputs)


def test_features_that_a_device_can_not_feed_are_left_out() -> None:
    two = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1.0, 2.0, 3.0]), [3, 2])
    one = tf.SparseTensor([[0, 0], [2, 0]], tf.constant([5, 6], tf.int64), [3, 1])
    none = tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.float32), [3, 0])
    values = {"two": two, "one": one, "none": none, "text": tf.constant(["a", "b", "c"]), "dense": tf.constant([1, 2, 3])}
    have = device_features(values)
    assert set(have) == {"one", "none", "dense"}
    assert have["one"].tolist() == [[5], [LOWEST], [6]]
    assert have["none"].shape == (3, 1)
    assert np.isnan(have["none"]).all()


def test_made_up_features_come_out_as_the_model_knows_them(numbers: FloatModel) -> None:
    bounds = {"length": (-2.0, 1.5), "mass": (0.1, 0.8), "window": (-1.0, 1.0), "age": (0.5, 20.0)}
    made = plausible_features(numbers, bounds, 50)
    again = plausible_features(numbers, bounds, 50)
    assert all(np.array_equal(made[name], again[name]) for name in numbers.signature.input_names)
    assert {name: values.dtype.name for name, values in made.items()} == {s.name: s.dtype for s in numbers.signature.inputs}
    results = numbers.predict(made)
    for name, (low, high) in bounds.items():
        values = results[name]
        assert low - 0.1 <= values.min() and values.max() <= high + 0.1, name
        assert np.ptp(values) > 0.6 * (high - low), name


def test_no_text_operator_is_left_in_the_flatbuffer(numbers: FloatModel, converted: Runner) -> None:
    assert not set(operators(converted._model)) & {"HASHTABLE", "HASHTABLE_FIND"}

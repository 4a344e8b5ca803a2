"""A split of transformed Examples, as single examples of the features that the model takes."""

import numpy as np
import pytest
import tensorflow as tf
from example_shards import example, examples_artifact, schema

from tfx_edge.components.training_data import training_dataset
from tfx_edge.schemas import EdgeError

SCHEMA = schema(scalar=("FLOAT",), image=("FLOAT", 2, 3), label=("INT",), tags=("INT", None))
RANDOM = np.random.default_rng(0)


def records(start, count):
    return [
        example({"scalar": [float(i)], "image": RANDOM.normal(size=6).tolist(), "label": [i % 3], "tags": [1] * (i % 2)})
        for i in range(start, start + count)
    ]


def read(artifacts, split="train", features=("scalar", "image"), label_key="label"):
    return training_dataset(artifacts, split, SCHEMA, features, label_key)


def test_every_example_of_every_shard_and_artifact_is_read_once_with_its_label(tmp_path):
    first = examples_artifact(tmp_path / "1", {"train": [records(0, 1500), records(1500, 3)], "eval": [records(9000, 2)]})
    second = examples_artifact(tmp_path / "2", {"train": [records(1503, 4)]})
    elements = list(read([first, second]).as_numpy_iterator())
    assert sorted(features["scalar"] for features, _ in elements) == list(range(1507))
    assert all(label == features["scalar"] % 3 for features, label in elements)


def test_features_have_the_shapes_of_the_schema_and_others_are_left_out(tmp_path):
    artifact = examples_artifact(tmp_path, {"train": [records(0, 2)]})
    features, label = read([artifact]).element_spec
    assert features == {"scalar": tf.TensorSpec([], tf.float32), "image": tf.TensorSpec([2, 3], tf.float32)}
    assert label == tf.TensorSpec([], tf.int64)


def test_the_order_is_the_same_each_time(tmp_path):
    artifact = examples_artifact(tmp_path, {"train": [records(start, 100) for start in range(0, 500, 100)]})
    first, second = ([float(features["scalar"]) for features, _ in read([artifact])] for _ in range(2))
    assert first == second


def test_the_label_may_be_an_input_too(tmp_path):
    artifact = examples_artifact(tmp_path, {"train": [records(0, 5)]})
    for features, label in read([artifact], features=["image"], label_key="image"):
        np.testing.assert_array_equal(features["image"], label)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"label_key": "lable"}, r"label 'lable': not among the transformed features image, label, scalar, tags.*label_key"),
        ({"features": ("scalar", "colour")}, r"feature 'colour': not among the transformed features"),
        ({"split": "test"}, r"split 'test': not in the examples"),
        ({"split": "empty"}, r"split 'empty' of the examples at .*: no examples"),
    ],
)
def test_what_is_missing_is_named(tmp_path, arguments, text):
    artifact = examples_artifact(tmp_path, {"train": [records(0, 2)], "empty": [[]]})
    with pytest.raises(EdgeError, match=text):
        read([artifact], **arguments)


def test_an_example_that_does_not_fit_the_schema_is_an_error_of_one_line(tmp_path):
    artifact = examples_artifact(tmp_path, {"train": [[*records(0, 2), example({"scalar": [1.0], "label": [0]})]]})
    with pytest.raises(EdgeError, match="Feature: image.*required") as error:
        read([artifact])
    assert "\n" not in str(error.value)
    assert "{{" not in str(error.value)

from typing import Any

import numpy as np
import pytest

from tfx_edge.components.labels import check_labels, check_weights
from tfx_edge.schemas import EdgeError, Metric

CLASSES = np.full((4, 3), 1 / 3, np.float32)


@pytest.mark.parametrize("weights", [[1.0, -0.5], [1.0, np.nan], [np.inf, 1.0]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(EdgeError, match=r"example_weight_key: its feature holds the weight (-0.5|nan|inf); "):
        check_weights(np.array(weights, np.float32))


def test_weights_of_zero_and_integers_pass() -> None:
    check_weights(np.array([0, 1, 2]))
    check_weights(np.array([0.0, 0.5], np.float32))


@pytest.mark.parametrize(
    ("labels", "said"), [([0, 1, 2, 3], "a label is 3"), ([0, 1, -1, 2], "a label is -1"), ([0.5, 1, 2, 0], "a label is 0.5")]
)
def test_a_label_that_is_no_class_is_named(labels: list[float], said: str) -> None:
    with pytest.raises(EdgeError, match=f"{said}, the output has the classes 0 to 2"):
        check_labels(Metric(metric="SparseCategoricalAccuracy"), np.array(labels), CLASSES, True)


@pytest.mark.parametrize("metric", ["CategoricalAccuracy", "CategoricalCrossentropy", "BinaryAccuracy", "MeanSquaredError"])
def test_a_metric_element_by_element_on_class_numbers_is_refused(metric: str) -> None:
    with pytest.raises(EdgeError, match=f"'{metric}' compares each of the output's 3 values with its label, an example has 1; "):
        check_labels(Metric(metric=metric), np.array([[0], [1], [2], [0]]), CLASSES, True)
    check_labels(Metric(metric=metric), np.eye(4, 3), CLASSES, True)


def test_a_class_that_the_output_has_not_is_named() -> None:
    with pytest.raises(EdgeError, match="metric 'AUC of class 3': the output has the classes 0 to 2"):
        check_labels(Metric(metric="AUC", class_id=3), np.array([0, 1, 2, 0]), CLASSES, False)


@pytest.mark.parametrize(("metric", "labels", "predictions", "is_mean"), [
    (Metric(metric="SparseCategoricalAccuracy"), np.array([0, 1, 2, 2]), CLASSES, True),
    (Metric(metric="SparseCategoricalAccuracy"), np.array([[0, 1], [2, 2]]), np.zeros((2, 2, 3)), True),
    (Metric(metric="BinaryAccuracy"), np.array([0, 1]), np.zeros((2, 1)), True),
    (Metric(metric="BinaryAccuracy", class_id=1), np.array([0, 1, 2, 0]), CLASSES, True),
    (Metric(metric="AUC", class_id=2), np.array([0, 1, 2, 0]), CLASSES, False),
    (Metric(metric="Precision", average="macro", class_ids=(0, 1)), np.array([0, 1, 2, 0]), CLASSES, False),
    (Metric(metric="MeanSquaredError"), np.zeros((2, 1)), np.zeros((2, 1)), True),
])  # fmt: skip
def test_labels_that_fit_pass(metric: Metric, labels: Any, predictions: Any, is_mean: bool) -> None:
    check_labels(metric, labels, predictions, is_mean)

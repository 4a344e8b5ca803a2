"""Whether labels and weights are such that the thresholds' metrics mean something: TFMA computes a number from most things.

A one-hot metric on class numbers compares each column with the number, a label beyond the classes is never predicted, and
weights of 0 make every metric 0 for every model: a gate that took these numbers would bless anything.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas import EdgeError, Metric


def check_weights(weights: NDArray[Any]) -> None:
    """Checks example weights `[n]`.

    Raises:
        EdgeError: one is negative, NaN or infinite.
    """
    if weights.dtype.kind in "fiu" and bool((np.isfinite(weights) & (weights >= 0)).all()):
        return
    wrong = [w for w in weights.tolist() if not (isinstance(w, (int, float)) and math.isfinite(w) and w >= 0)]
    raise EdgeError(f"example_weight_key: its feature holds the weight {wrong[0]!r}; weights are at least 0, mend the data")


def check_labels(metric: Metric, labels: NDArray[Any], predictions: NDArray[Any], is_mean: bool) -> None:
    """Checks labels of one output against its predictions.

    Args:
        metric: of a threshold.
        labels: `[n, ...]`.
        predictions: `[n, ...]`.
        is_mean: whether the metric is the mean of a value of each example, so computed from label and prediction element by element.

    Raises:
        EdgeError: a label that isn't one of the classes, a class that the output hasn't, or labels and predictions of different
            sizes for a metric that compares them element by element.
    """
    columns = predictions.shape[-1] if predictions.ndim > 1 else 1
    if metric.class_id is not None and columns > 1 and metric.class_id >= columns:
        raise EdgeError(f"metric {metric.title!r}: the output has the classes 0 to {columns - 1}; name one of these")
    if columns == 1 or labels.dtype.kind not in "fiub" or not len(labels):
        return
    if metric.metric.startswith("Sparse"):
        numbers = labels.astype(np.float64)
        wrong = numbers[~((numbers >= 0) & (numbers < columns) & (numbers == np.floor(numbers)))]
        if wrong.size:
            raise EdgeError(
                f"metric {metric.metric!r}: a label is {wrong[0]:g}, the output has the classes 0 to {columns - 1}; mend the labels"
            )
    elif is_mean and metric.class_id is None and math.prod(labels.shape[1:]) != math.prod(predictions.shape[1:]):
        raise EdgeError(
            f"metric {metric.metric!r} compares each of the output's {math.prod(predictions.shape[1:])} values with its label, an example "
            f"has {math.prod(labels.shape[1:])}; for labels that are class numbers take a Sparse metric, as SparseCategoricalAccuracy"
        )

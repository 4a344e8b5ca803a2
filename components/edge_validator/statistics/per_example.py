"""The value that a metric gives each example, where the metric is a mean of such values.

Which metrics are is told by their class: Keras builds them as a function of label and prediction in a `MeanMetricWrapper`. The
function is called as it is. TFMA has classes of its own for some of the same names (BinaryAccuracy, MeanSquaredError); the
values are Keras' there too, and `estimates.agrees` tells whether their mean is what TFMA measured.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

PerExample = Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]]


def per_example(metric: str, config: Mapping[str, Any], class_id: int | None = None) -> PerExample | None:
    """The function from labels and predictions to a value for each example.

    Args:
        metric: class name, as in a Threshold.
        config: the metric's arguments.
        class_id: the class that is looked at, against the rest; None for all.

    Returns:
        A function of labels `[n, ...]` and predictions `[n, ...]` that gives `[n]` in float64; None where the metric is no mean
        over examples.
    """
    cls: Any = getattr(tf_keras.metrics, metric, None)
    if not _is_mean(cls):
        return None
    try:
        instance = cls.from_config(dict(config))
    except Exception:  # noqa: BLE001 - arguments that TFMA's class of the name has and Keras' has not
        return None
    function, arguments, dtype = instance._fn, instance._fn_kwargs, instance.dtype

    def values(labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        selected = (rows(labels), rows(predictions))
        if class_id is not None:
            selected = _of_class(class_id, *selected)
        y_true, y_pred = (tf.cast(a, dtype) for a in selected)
        each = np.asarray(function(y_true, y_pred, **arguments), np.float64)
        mean: NDArray[np.float64] = each.reshape(len(each), -1).mean(axis=1)
        return mean

    return values


def rows(values: NDArray[Any]) -> NDArray[Any]:
    """Batches shaped as TFMA gives them to Keras: `[n, ...]` without dimensions of 1, but at least `[n, 1]`."""
    squeezed = tuple(d for d in values.shape[1:] if d != 1)
    return values.reshape(len(values), *(squeezed or (1,)))


def _of_class(class_id: int, labels: NDArray[Any], predictions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """One class against the rest: its column of the predictions, and of labels that have one, or whether the label is it."""
    column = slice(class_id, class_id + 1)
    of_labels = labels[:, column] if labels.shape == predictions.shape else labels == class_id
    return of_labels, predictions[:, column]


def _is_mean(cls: Any) -> bool:
    wrapper = tf_keras.metrics.MeanMetricWrapper
    if not isinstance(cls, type) or not issubclass(cls, wrapper) or cls is wrapper:
        return False
    # RootMeanSquaredError, say, is a Mean too, but makes something else of it in the end.
    return all(getattr(cls, name) is getattr(wrapper, name) for name in ("update_state", "result"))

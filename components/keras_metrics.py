"""A threshold's metric as Keras computes it, for searches that measure flatbuffers themselves."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.error_text import one_line
from tfx_edge.schemas import EdgeError, Threshold


def make_metric(threshold: Threshold) -> tf_keras.metrics.Metric:
    """The metric that a threshold names.

    Raises:
        EdgeError: Keras has no such metric, or not with these arguments.
    """
    kind = getattr(tf_keras.metrics, threshold.metric, None)
    if not (isinstance(kind, type) and issubclass(kind, tf_keras.metrics.Metric)):
        raise EdgeError(f"metric {threshold.metric!r}: Keras has none of this name; a search takes tf_keras.metrics' class names")
    try:
        return kind(**threshold.config)
    except (TypeError, ValueError) as error:
        raise EdgeError(
            f"metric {threshold.metric!r} with config {threshold.config}: {one_line(error)}; give what Keras' class takes"
        ) from error


def update(metric: tf_keras.metrics.Metric, threshold: Threshold, labels: NDArray[Any], predictions: NDArray[Any]) -> None:
    """Adds a batch to a metric.

    Raises:
        EdgeError: the metric doesn't take these labels and predictions.
    """
    try:
        metric.update_state(labels, predictions)
    except (tf.errors.OpError, TypeError, ValueError) as error:
        raise EdgeError(
            f"metric {threshold.metric!r} takes no labels {labels.dtype} {labels.shape} with predictions "
            f"{predictions.dtype} {predictions.shape}: {one_line(error)}; name another metric"
        ) from error


def value(metric: tf_keras.metrics.Metric, threshold: Threshold) -> float:
    """The metric over all that was added.

    Raises:
        EdgeError: it is no number.
    """
    result = float(metric.result())
    if not math.isfinite(result):
        raise EdgeError(f"metric {threshold.metric!r} is {result}; a model's predictions are no numbers")
    return result


def output_name(names: Sequence[str], threshold: Threshold) -> str:
    """The output of a model that a threshold looks at.

    Raises:
        EdgeError: there is none of its name, or several and it names none.
    """
    name = names[0] if threshold.output is None and len(names) == 1 else threshold.output
    if name is None or name not in names:
        raise EdgeError(f"threshold.output {name!r}: the model's outputs are {', '.join(names)}; name one of these")
    return name

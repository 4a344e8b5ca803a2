"""What a candidate of the accuracy search is worth: predictions on examples that are read once, and a metric of Keras on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from tfx_edge.components import keys
from tfx_edge.components.examples import transformed_schema
from tfx_edge.components.keras_metrics import make_metric, output_name, update, value
from tfx_edge.components.keras_step import Artifacts
from tfx_edge.components.training_data import training_dataset
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Evaluator
from tfx_edge.schemas import AccuracyTarget, EdgeError, Threshold

_BATCH = 256  # examples read, and given to the metric, at once


def make_evaluator(float_model: bytes, dataset: tf.data.Dataset, target: AccuracyTarget) -> Evaluator:
    """Reads the examples of a search and makes what measures flatbuffers on them.

    Args:
        float_model: the float flatbuffer.
        dataset: one pass over `(features by name, label)`, one example at a time, as `training_dataset` gives it; only the
            target's number of examples is read, and held in memory.
        target: the metric, and how many examples.

    Raises:
        EdgeError: Keras has no such metric, the model no such output, there are no examples, or they don't fit the model.
    """
    make_metric(target.threshold)
    signature = Runner(float_model).signature
    output = output_name(signature.output_names, target.threshold)
    features, labels = _read(dataset.take(-1 if target.examples is None else target.examples), target)
    _check_labels(target, labels, next(spec.shape[-1] for spec in signature.outputs if spec.name == output))
    return Evaluator(float_model, features, output, _Metric(target.threshold, labels))


def held_out(input_dict: Artifacts, features: Sequence[str], target: AccuracyTarget) -> tf.data.Dataset:
    """The examples that a search measures on.

    Args:
        input_dict: of Quantizer: `examples`, and `transform_graph` or `schema`.
        features: what the model takes.
        target: the split and the label's key.

    Raises:
        EdgeError: there are no examples, or they have no such split, label or feature.
    """
    if not input_dict.get(keys.EXAMPLES):
        raise EdgeError("Quantizer: accuracy_target needs examples to measure on and there are none; give it transformed_examples")
    schema = transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH, []), input_dict.get(keys.SCHEMA, []))
    return training_dataset(input_dict[keys.EXAMPLES], target.split, schema, features, target.label_key)


def _check_labels(target: AccuracyTarget, labels: NDArray[Any], classes: int | None) -> None:
    """Keras compares class numbers and one-hot labels with anything: what comes of a mistake is a number that no model changes."""
    metric, numbers = target.threshold.metric, labels.size == len(labels)
    if classes is None or classes < 2 or "Categorical" not in metric:
        return
    if "Sparse" not in metric and numbers:
        raise EdgeError(
            f"metric {metric!r} takes one-hot labels of {classes} classes, {target.label_key!r} holds class numbers; take a Sparse metric, "
            "as SparseCategoricalAccuracy"
        )
    if "Sparse" in metric and not 0 <= labels.min() <= labels.max() < classes:
        raise EdgeError(
            f"accuracy_target.label_key {target.label_key!r} goes from {labels.min()} to {labels.max()}, the model's output has {classes} "
            "classes; name the label that the model was trained on, or mend it in Transform"
        )


class _Metric:
    """Predictions of all examples to the threshold's metric."""

    def __init__(self, threshold: Threshold, labels: NDArray[Any]) -> None:
        self._threshold, self._labels = threshold, labels

    def __call__(self, predictions: NDArray[Any]) -> float:
        metric = make_metric(self._threshold)
        for at in range(0, len(self._labels), _BATCH):
            update(metric, self._threshold, self._labels[at : at + _BATCH], predictions[at : at + _BATCH])
        return value(metric, self._threshold)


def _read(dataset: tf.data.Dataset, target: AccuracyTarget) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    batches = list(dataset.batch(_BATCH).as_numpy_iterator())
    if not batches:
        raise EdgeError(f"accuracy_target.split {target.split!r} has no examples; name another split")
    features = {name: np.concatenate([batch[name] for batch, _ in batches]) for name in batches[0][0]}
    return features, np.concatenate([labels for _, labels in batches])

"""What a candidate of the accuracy search is worth: predictions on examples that are read once, and a metric of Keras on them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

from tfx_edge.components import keys
from tfx_edge.components.examples import transformed_schema
from tfx_edge.components.keras_metrics import make_metric, output_name, update, value
from tfx_edge.components.keras_step import Artifacts
from tfx_edge.components.labels import check_labels
from tfx_edge.components.training_data import training_dataset
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.search import Evaluator
from tfx_edge.schemas import AccuracyTarget, EdgeError

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
    output = output_name(Runner(float_model).signature.output_names, target.threshold)
    features, labels = _read(dataset.take(-1 if target.examples is None else target.examples), target)
    return Evaluator(float_model, features, output, _Metric(target, labels))


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


class _Metric:
    """Predictions of all examples to the threshold's metric."""

    def __init__(self, target: AccuracyTarget, labels: NDArray[Any]) -> None:
        self._target, self._labels = target, labels

    def __call__(self, predictions: NDArray[Any]) -> float:
        threshold = self._target.threshold
        metric = make_metric(threshold)
        for at in range(0, len(self._labels), _BATCH):
            update(metric, threshold, self._labels[at : at + _BATCH], predictions[at : at + _BATCH])
        try:  # behind what Keras itself refuses: of the rest it makes a number that no model changes
            check_labels(threshold, self._labels, predictions, is_mean=isinstance(metric, tf_keras.metrics.MeanMetricWrapper))
        except EdgeError as error:
            raise EdgeError(f"accuracy_target.label_key {self._target.label_key!r}: {error}") from error
        return value(metric, threshold)


def _read(dataset: tf.data.Dataset, target: AccuracyTarget) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    batches = list(dataset.batch(_BATCH).as_numpy_iterator())
    if not batches:
        raise EdgeError(f"accuracy_target.split {target.split!r} has no examples; name another split")
    features = {name: np.concatenate([batch[name] for batch, _ in batches]) for name in batches[0][0]}
    return features, np.concatenate([labels for _, labels in batches])

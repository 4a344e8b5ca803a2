"""Whether there are examples, of the right kind, and labels that a loss can compare with the outputs."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.model_copy import output_keys
from tfx_edge.schemas import EdgeError, FineTuningConfig

_SPARSE = "sparse_categorical_crossentropy"
_REGRESSIONS = {"mean_squared_error", "mean_absolute_error", "huber", "log_cosh", "mean_squared_logarithmic_error"}
_ELEMENTWISE = _REGRESSIONS | {"categorical_crossentropy", "binary_crossentropy", "hinge", "squared_hinge", "categorical_hinge"}

_VALUES: dict[str, tuple[str, Callable[[NDArray[Any]], NDArray[np.bool_]]]] = {
    _SPARSE: ("classes as whole numbers", lambda values: values != np.floor(values)),
    **dict.fromkeys(("binary_crossentropy", "categorical_crossentropy"), ("0 to 1", lambda values: ~((values >= 0) & (values <= 1)))),
}


def check_dataset(dataset: Any, what: str) -> None:
    """Checks that examples are a dataset at all.

    Args:
        dataset: whatever the user gave.
        what: training or validation, for the error.

    Raises:
        EdgeError: it is something else; the text says how to make one.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise EdgeError(
            f"the {what} examples are a {type(dataset).__name__}; expected a tf.data.Dataset of (features by name, label), one example an "
            "element; make one: tf.data.Dataset.from_tensor_slices((features, labels))"
        )


def check_examples(training: tf.data.Dataset, validation: tf.data.Dataset | None, config: FineTuningConfig) -> None:
    """Checks that there are examples to train on, and to validate on where early stopping holds some out; reads
    the first ones where their number isn't known.

    Raises:
        EdgeError: there are none, they never end, or can't be read.
    """
    if training.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise EdgeError("the training examples never end; expected one pass over them; leave out repeat()")
    if _empty(training):
        raise EdgeError(f"split {config.split!r}: the training examples are empty; expected at least one")
    if validation is not None and _empty(validation):
        stopping = config.early_stopping
        if stopping is not None and stopping.split is None:
            raise EdgeError(
                f"EarlyStopping.holdout {stopping.holdout} leaves no example to look at: there are fewer than {stopping.holdout}; "
                "lower it, or give validation examples"
            )
        raise EdgeError("the validation examples are empty; expected at least one")


def check_loss(model: tf_keras.Model, label: Any, loss: Any, config: FineTuningConfig) -> None:
    """Checks that labels have the shapes of the outputs, which a loss would else broadcast, and that class weights fit.

    Args:
        model: the one to train.
        label: the specification of a single label, or of one for each output by name.
        loss: see `training_loss`; one that isn't Keras' own is left to itself.
        config: class weights; `label_key` for errors.

    Raises:
        EdgeError: they don't fit.
    """
    names = output_keys(model)
    losses = loss if isinstance(loss, dict) else {names[0]: loss}
    labels = label if isinstance(label, dict) else {names[0]: label}
    for name, output in zip(names, model.outputs, strict=True):
        if name in losses and name in labels:
            key = name if isinstance(label, dict) else config.label_key
            _check_shape(key, labels[name].shape, output.shape[1:], loss_name(losses[name]))
    if config.class_weights is not None:
        _check_class_weights(model, loss_name(losses[names[0]]), config)


def check_label_values(model: tf_keras.Model, dataset: tf.data.Dataset, loss: Any, config: FineTuningConfig) -> None:
    """Checks the labels of the first batch where a loss would take any number without a word.

    Args:
        model: the one to train.
        dataset: of single examples, not empty.
        loss: see `training_loss`.
        config: the batch size; `label_key` for errors.

    Raises:
        EdgeError: a class isn't a whole number, or a label of a binary or categorical cross-entropy isn't from 0 to 1.
    """
    names = output_keys(model)
    losses = loss if isinstance(loss, dict) else {names[0]: loss}
    checked = {name: loss_name(one) for name, one in losses.items() if loss_name(one) in _VALUES}
    if not checked:
        return
    try:
        _, labels = next(iter(dataset.batch(config.batch_size).take(1)))
    except (tf.errors.OpError, TypeError, ValueError):
        return  # examples that don't batch are told of where they are trained on
    for name, kind in checked.items():
        values = (labels[name] if isinstance(labels, dict) else labels).numpy().reshape(-1)
        expected, wrong = _VALUES[kind]
        bad = values[wrong(values)]
        if bad.size:
            key = name if isinstance(labels, dict) else config.label_key
            raise EdgeError(f"label {key!r}: the value {bad[0]:g} under loss {kind}; expected {expected}; take another loss, or encode it")


def loss_name(loss: Any) -> str:
    """A loss's name as Keras' functions have it, also where it is an object or an alias.

    >>> loss_name("mse"), loss_name(tf_keras.losses.SparseCategoricalCrossentropy())
    ('mean_squared_error', 'sparse_categorical_crossentropy')
    """
    if isinstance(loss, str):
        loss = tf_keras.losses.get(loss)
    if isinstance(loss, tf_keras.losses.Loss):
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(loss).__name__).lower()
    return str(getattr(loss, "__name__", ""))


def _check_shape(key: str, label: tf.TensorShape, output: tf.TensorShape, loss: str) -> None:
    if label.rank is None or output.rank is None:
        return
    if loss == _SPARSE:
        wanted = [output[:-1], output[:-1].concatenate([1])]
    elif loss in _ELEMENTWISE:
        wanted = [output, *([output[:-1]] if output[-1:].as_list() == [1] else [])]
    else:
        return
    if not any(label.is_compatible_with(shape) for shape in wanted):
        raise EdgeError(
            f"label {key!r} has shape {tuple(label)} an example, the model's output {tuple(output)}: loss {loss} expects labels of shape "
            f"{tuple(wanted[0])}; for integer classes take sparse_categorical_crossentropy, or encode the labels"
        )


def _check_class_weights(model: tf_keras.Model, loss: str, config: FineTuningConfig) -> None:
    if loss in _REGRESSIONS and config.class_weights == "balanced":
        raise EdgeError(f"class_weights 'balanced' weighs classes, but loss {loss} is for a regression; leave class_weights out")
    last = model.outputs[0].shape[-1]
    classes = last if last is None or last > 1 else 2
    weights = config.class_weights or ()
    if weights != "balanced" and classes is not None and len(weights) != classes:
        raise EdgeError(f"class_weights has {len(weights)} weights, model {model.name!r} {classes} classes; give one for each class")


def _empty(dataset: tf.data.Dataset) -> bool:
    if dataset.cardinality() >= 0:
        return int(dataset.cardinality()) == 0
    try:
        return next(iter(dataset.take(1)), None) is None
    except tf.errors.OpError as error:
        raise EdgeError(f"the training examples can't be read: {one_line(error)}; mend or remake them") from error

"""Examples by feature name to batches as a model takes them."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.fine_tuning.data_checks import check_dataset
from tfx_edge.optimize.model_copy import output_keys
from tfx_edge.schemas import EdgeError, FineTuningConfig


def input_batches(model: tf_keras.Model, dataset: tf.data.Dataset, config: FineTuningConfig) -> tf.data.Dataset:
    """Batches examples and shapes their features as the model's inputs.

    Args:
        model: see `fine_tune`.
        dataset: see `fine_tune`.
        config: the batch size; `label_key` for errors.

    Returns:
        Batches of (inputs in the model's order, label); a model with one input gets it bare.

    Raises:
        EdgeError: a feature is missing, isn't dense, or has another shape than its input; the label isn't numeric.
    """
    check_elements(model, dataset, config)
    return as_inputs(model, dataset.batch(config.batch_size))


def as_inputs(model: tf_keras.Model, batches: tf.data.Dataset) -> tf.data.Dataset:
    """Picks the model's inputs from batches of features and gives them its shapes."""
    inputs = dict(zip(model.input_names, model.inputs, strict=True))

    def fit(features: Mapping[str, tf.Tensor], label: Any) -> tuple[Any, Any]:
        fitted = tuple(_reshaped(features[name], spec.shape) for name, spec in inputs.items())
        return (fitted if len(fitted) > 1 else fitted[0]), label

    return batches.map(fit, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def check_elements(model: tf_keras.Model, dataset: tf.data.Dataset, config: FineTuningConfig, what: str = "training") -> None:
    """Checks that single examples fit a model; see `input_batches`."""
    check_dataset(dataset, what)
    element = dataset.element_spec
    if not (isinstance(element, tuple) and len(element) == 2 and isinstance(element[0], dict)):
        raise EdgeError(f"{what} examples are {element!r:.200}; expected (features by name, label) for each example")
    features, label = element
    _check_labels(model, label, config)
    missing = [name for name in model.input_names if name not in features]
    if missing:
        raise EdgeError(
            f"the {what} examples: no feature {', '.join(map(repr, missing))}, which model {model.name!r} takes; there are "
            f"{', '.join(map(repr, sorted(features)))}; inputs must be named as the transformed features"
        )
    for name, spec in zip(model.input_names, model.inputs, strict=True):
        feature, each = features[name], spec.shape[1:]
        if not isinstance(feature, tf.TensorSpec):
            raise EdgeError(f"feature {name!r} is {_about(feature)}, input {name!r} of model {model.name!r} takes dense values")
        if feature.dtype == tf.string and spec.dtype != tf.string:
            raise EdgeError(f"feature {name!r} is string, input {name!r} of model {model.name!r} takes {spec.dtype.name}; encode it before")
        if each.is_fully_defined() and not _fits(feature.shape, each):
            raise EdgeError(
                f"feature {name!r}: an example has shape {tuple(feature.shape)}, the model's input takes {tuple(each)}; "
                "give the model the features that it was trained on, one example an element of the dataset"
            )


def _check_labels(model: tf_keras.Model, label: Any, config: FineTuningConfig) -> None:
    names = output_keys(model)
    outputs = f"model {model.name!r} has {len(names)} outputs ({', '.join(names)})"
    if config.output_losses and set(config.output_losses) != set(names):
        raise EdgeError(f"output_losses names {', '.join(config.output_losses)}, but {outputs}; name a loss for each")
    if len(names) != 1 and not config.output_losses:
        raise EdgeError(f"{outputs}; fine-tuning takes a model with one, or a loss for each in FineTuningConfig.output_losses")
    labels = {config.label_key: label}
    if config.output_losses:
        if not isinstance(label, dict) or set(label) != set(names):
            have = ", ".join(sorted(label)) if isinstance(label, dict) else _about(label)
            raise EdgeError(f"the labels of the training examples are {have}; expected one by the name of each output: {outputs}")
        labels = label
    for name, spec in labels.items():
        if not isinstance(spec, tf.TensorSpec) or not (spec.dtype.is_floating or spec.dtype.is_integer or spec.dtype.is_bool):
            raise EdgeError(f"label {name!r} is {_about(spec)}; expected numbers, dense; encode it in preprocessing_fn")


def _reshaped(values: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """Gives a batch of a feature an input's shape, so that scalars `[n]` feed an input `[n, 1]`."""
    each = shape[1:]
    return tf.reshape(values, [-1, *each]) if each.is_fully_defined() else values


def _fits(feature: tf.TensorShape, each: tf.TensorShape) -> bool:
    """Whether the shapes are equal, or one value with and without an axis: any other reshaping would mix up what axes mean."""
    if not feature.is_fully_defined():
        return False
    return feature.as_list() == each.as_list() or (feature.as_list() in ([], [1]) and each.as_list() in ([], [1]))


def _about(spec: Any) -> str:
    return f"{spec.dtype.name} {tuple(spec.shape)}" if isinstance(spec, tf.TensorSpec) else f"a {type(spec).__name__.removesuffix('Spec')}"

"""Training a model a little further on named features, with the loss it was made for: what every technique that changes weights needs."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.model_copy import compile_arguments
from tfx_edge.schemas import EdgeError, FineTuningConfig

_LOSSES = {
    "sparse_categorical_crossentropy": tf_keras.losses.SparseCategoricalCrossentropy,
    "categorical_crossentropy": tf_keras.losses.CategoricalCrossentropy,
    "binary_crossentropy": tf_keras.losses.BinaryCrossentropy,
}


def fine_tune(
    model: tf_keras.Model,
    dataset: tf.data.Dataset,
    config: FineTuningConfig,
    *,
    compiled_like: tf_keras.Model | None = None,
    callbacks: Sequence[tf_keras.callbacks.Callback] = (),
) -> tf_keras.callbacks.History:
    """Trains a model in place with Adam, as `Model.fit` does; copy it first where the original is still needed.

    The same model, data, config and machine give the same weights. For that the global seeds of Python, NumPy and
    TensorFlow are set to `config.seed`.

    Args:
        model: with one output; its inputs are named as the features.
        dataset: one pass over the examples, one at a time: `(features, label)`, features a dict of dense tensors by name, scalars
            where the model takes `[batch, 1]`. It may hold more features than the model takes.
        config: `config.label_key` only names the label in errors.
        compiled_like: the model whose loss and metrics to use; by default the model itself.
        callbacks: Keras callbacks of a technique.

    Returns:
        Keras' history: loss and metrics by epoch.

    Raises:
        EdgeError: before training, if no loss is known, or the features or the label don't fit the model; during it, if the loss
            becomes NaN or infinite, or TensorFlow refuses the data.
    """
    tf_keras.utils.set_random_seed(config.seed)
    shuffled = dataset.shuffle(config.shuffle_buffer, seed=config.seed)  # in another order each epoch
    batches = input_batches(model, shuffled, config).prefetch(tf.data.AUTOTUNE)
    source = compiled_like or model
    arguments = compile_arguments(source)
    loss = _named_loss(config) or arguments.get("loss")
    if loss is None:
        raise EdgeError(
            f"model {source.name!r}: not compiled with a loss, and FineTuningConfig.loss is None; "
            "name a loss there (and from_logits), or compile the model before saving it"
        )
    model.compile(**{**arguments, "optimizer": tf_keras.optimizers.Adam(config.learning_rate), "loss": loss})
    try:
        return model.fit(batches, epochs=config.epochs, verbose=0, callbacks=[_StopAtInvalidLoss(config), *callbacks])
    except (tf.errors.OpError, ValueError, TypeError) as error:
        raise EdgeError(
            f"fine-tuning model {model.name!r} failed: {one_line(error)}; expected features and a label {config.label_key!r} that fit "
            "its inputs and loss"
        ) from error


def input_batches(model: tf_keras.Model, dataset: tf.data.Dataset, config: FineTuningConfig) -> tf.data.Dataset:
    """Batches examples and shapes their features as the model's inputs.

    Args:
        model: see `fine_tune`.
        dataset: see `fine_tune`.
        config: the batch size; `label_key` for errors.

    Returns:
        Batches of (inputs in the model's order, label); a model with one input gets it bare.

    Raises:
        EdgeError: a feature is missing, isn't dense, or has another number of values than its input; the label isn't numeric.
    """
    _check_elements(model, dataset, config)
    inputs = dict(zip(model.input_names, model.inputs, strict=True))

    def fit(features: Mapping[str, tf.Tensor], label: tf.Tensor) -> tuple[Any, tf.Tensor]:
        fitted = tuple(_reshaped(features[name], spec.shape) for name, spec in inputs.items())
        return (fitted if len(fitted) > 1 else fitted[0]), label

    return dataset.batch(config.batch_size).map(fit, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def count_steps(dataset: tf.data.Dataset, config: FineTuningConfig) -> int:
    """How many steps `fine_tune` will take; reads the dataset once where its size isn't known.

    Raises:
        EdgeError: the dataset is empty, endless or can't be read.
    """
    examples = int(dataset.cardinality())
    if examples == tf.data.INFINITE_CARDINALITY:
        raise EdgeError("the training examples never end; expected one pass over them; leave out repeat()")
    if examples == tf.data.UNKNOWN_CARDINALITY:
        try:
            examples = int(dataset.reduce(tf.constant(0, tf.int64), lambda count, *_: count + 1))
        except tf.errors.OpError as error:
            raise EdgeError(f"the training examples can't be read: {one_line(error)}; mend or remake them") from error
    if not examples:
        raise EdgeError(f"split {config.split!r}: no examples to train on; expected at least one")
    return config.epochs * -(-examples // config.batch_size)


def _named_loss(config: FineTuningConfig) -> tf_keras.losses.Loss | None:
    if config.loss == "mean_squared_error":
        return tf_keras.losses.MeanSquaredError()
    return _LOSSES[config.loss](from_logits=config.from_logits) if config.loss else None


def _reshaped(values: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """Gives a batch of a feature an input's shape, so that scalars `[n]` feed an input `[n, 1]`."""
    each = shape[1:]
    return tf.reshape(values, [-1, *each]) if each.is_fully_defined() else values


def _check_elements(model: tf_keras.Model, dataset: tf.data.Dataset, config: FineTuningConfig) -> None:
    element = dataset.element_spec
    if not (isinstance(element, tuple) and len(element) == 2 and isinstance(element[0], dict)):
        raise EdgeError(f"training examples are {element!r:.200}; expected (features by name, label) for each example")
    if len(model.outputs) != 1:
        raise EdgeError(
            f"model {model.name!r} has {len(model.outputs)} outputs ({', '.join(model.output_names)}); fine-tuning takes a model with one"
        )
    features, label = element
    if not isinstance(label, tf.TensorSpec) or not (label.dtype.is_floating or label.dtype.is_integer or label.dtype.is_bool):
        raise EdgeError(f"label {config.label_key!r} is {_about(label)}; expected numbers, dense; encode it in preprocessing_fn")
    missing = [name for name in model.input_names if name not in features]
    if missing:
        raise EdgeError(
            f"the training examples: no feature {', '.join(map(repr, missing))}, which model {model.name!r} takes; there are "
            f"{', '.join(map(repr, sorted(features)))}; inputs must be named as the transformed features"
        )
    for name, spec in zip(model.input_names, model.inputs, strict=True):
        feature, each = features[name], spec.shape[1:]
        if not isinstance(feature, tf.TensorSpec):
            raise EdgeError(f"feature {name!r} is {_about(feature)}, input {name!r} of model {model.name!r} takes dense values")
        if each.is_fully_defined() and feature.shape.num_elements() != each.num_elements():
            raise EdgeError(
                f"feature {name!r}: an example has shape {tuple(feature.shape)}, the model's input takes {tuple(each)}; "
                "give the model the features that it was trained on, one example an element of the dataset"
            )


def _about(spec: Any) -> str:
    return f"{spec.dtype.name} {tuple(spec.shape)}" if isinstance(spec, tf.TensorSpec) else f"a {type(spec).__name__.removesuffix('Spec')}"


class _StopAtInvalidLoss(tf_keras.callbacks.Callback):
    """Ends training with an error at the first step whose loss is no number."""

    def __init__(self, config: FineTuningConfig) -> None:
        super().__init__()
        self._config = config
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        loss = float((logs or {}).get("loss", 0.0))
        if not -float("inf") < loss < float("inf"):
            raise EdgeError(
                f"the loss became {loss} in epoch {self._epoch + 1}, step {batch + 1}; expected a finite number; lower "
                f"FineTuningConfig.learning_rate ({self._config.learning_rate}), or look for NaN in the features and label "
                f"{self._config.label_key!r}"
            )

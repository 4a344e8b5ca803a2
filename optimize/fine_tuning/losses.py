"""The loss that a model is trained with."""

from typing import Any

import tf_keras

from tfx_edge.optimize.model_copy import compile_arguments, output_keys
from tfx_edge.optimize.output_activation import output_activation
from tfx_edge.schemas import EdgeError, FineTuningConfig

_CROSS_ENTROPIES = {
    "sparse_categorical_crossentropy": tf_keras.losses.SparseCategoricalCrossentropy,
    "categorical_crossentropy": tf_keras.losses.CategoricalCrossentropy,
    "binary_crossentropy": tf_keras.losses.BinaryCrossentropy,
}
_OTHERS = {
    "mean_squared_error": tf_keras.losses.MeanSquaredError,
    "hinge": tf_keras.losses.Hinge,
    "categorical_hinge": tf_keras.losses.CategoricalHinge,
}


def training_loss(source: tf_keras.Model, config: FineTuningConfig) -> Any:
    """The loss that the config names, or else the one that a model was compiled with; for several outputs a dict by name.

    Raises:
        EdgeError: there is none, or the config takes probabilities for logits, or logits for probabilities.
    """
    names = output_keys(source)
    named = config.output_losses or ({names[0]: config.loss} if config.loss else {})
    for name, output in zip(names, source.outputs, strict=True):
        if named.get(name) in _CROSS_ENTROPIES:
            _check_activation(source, name, output, config)
    if config.output_losses:
        return {name: _named(loss, config) for name, loss in config.output_losses.items()}
    loss = _named(config.loss, config) if config.loss else _only(compile_arguments(source).get("loss"))
    if loss is None:
        raise EdgeError(
            f"model {source.name!r}: not compiled with a loss, and FineTuningConfig.loss is None; "
            "name a loss there (and from_logits), or compile the model before saving it"
        )
    return loss


def _check_activation(source: tf_keras.Model, name: str, output: Any, config: FineTuningConfig) -> None:
    activation = output_activation(output)
    wrong = activation in ("softmax", "sigmoid") if config.from_logits else activation == "linear"
    if wrong:
        raise EdgeError(
            f"FineTuningConfig.from_logits is {config.from_logits}, but the activation of output {name!r} of model {source.name!r} is "
            f"{activation}, which gives {'probabilities' if config.from_logits else 'logits'}; set from_logits={not config.from_logits}"
        )


def _only(loss: Any) -> Any:
    """The loss of a model with one output, which may have been compiled by that output's name or in a list."""
    if isinstance(loss, (dict, list, tuple)) and len(loss) == 1:
        return next(iter(loss.values() if isinstance(loss, dict) else loss))
    return loss


def _named(name: str, config: FineTuningConfig) -> tf_keras.losses.Loss:
    if name == "huber":
        return tf_keras.losses.Huber(delta=config.huber_delta)
    return _CROSS_ENTROPIES[name](from_logits=config.from_logits) if name in _CROSS_ENTROPIES else _OTHERS[name]()

"""The loss that a model is trained with."""

from typing import Any

import tf_keras

from tfx_edge.optimize.model_copy import compile_arguments
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
        EdgeError: there is none.
    """
    if config.output_losses:
        return {name: _named(loss, config) for name, loss in config.output_losses.items()}
    loss = _named(config.loss, config) if config.loss else compile_arguments(source).get("loss")
    if loss is None:
        raise EdgeError(
            f"model {source.name!r}: not compiled with a loss, and FineTuningConfig.loss is None; "
            "name a loss there (and from_logits), or compile the model before saving it"
        )
    return loss


def _named(name: str, config: FineTuningConfig) -> tf_keras.losses.Loss:
    if name == "huber":
        return tf_keras.losses.Huber(delta=config.huber_delta)
    return _CROSS_ENTROPIES[name](from_logits=config.from_logits) if name in _CROSS_ENTROPIES else _OTHERS[name]()

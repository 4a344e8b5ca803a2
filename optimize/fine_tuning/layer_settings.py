"""What holds while a model is trained and no longer: penalties on kernels, dropout rates, BatchNorm's momentum."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras import layers

from tfx_edge.schemas import EdgeError, FineTuningConfig
from tfx_edge.schemas.training import Regularization

_DROPOUT = (
    layers.Dropout,
    layers.SpatialDropout1D,
    layers.SpatialDropout2D,
    layers.SpatialDropout3D,
    layers.AlphaDropout,
    layers.GaussianDropout,
)


@dataclass(frozen=True)
class LayersInTraining:
    """What the settings reach.

    Attributes:
        penalized: names of the kernels that L1 and L2 are counted over.
        dropout: names of the layers that get another rate.
        momentum: names of the layers that get another momentum.
        moving_statistics: names of the layers whose moving statistics are taken again after training.
    """

    penalized: tuple[str, ...]
    dropout: tuple[str, ...]
    momentum: tuple[str, ...]
    moving_statistics: tuple[str, ...]


def layers_in_training(model: tf_keras.Model, config: FineTuningConfig) -> LayersInTraining:
    """Which layers of a model a config's regularization and BatchNorm settings reach; none where a setting is left out.

    Raises:
        EdgeError: a setting reaches none.
    """
    penalty, norm = config.regularization, config.batch_normalization
    penalized = [v.name.removesuffix(":0") for v in kernels(model)] if penalty and (penalty.l1 or penalty.l2) else None
    dropout = [x.name for x in _dropout_layers(model)] if penalty and penalty.dropout is not None else None
    norms = [x.name for x in norm_layers(model)] if norm and (norm.recalibrate or norm.momentum is not None) else None
    for names, field, what in (
        (penalized, "regularization", "trainable kernels to penalize"),
        (dropout, "regularization.dropout", "dropout layers; put them into the model, at rate 0 if need be"),
        (norms, "batch_normalization", "trainable BatchNormalization layers"),
    ):
        if names == []:
            raise EdgeError(f"FineTuningConfig.{field}: model {model.name!r} has no {what}; or leave it out")
    momentum = tuple(norms or ()) if norm and norm.momentum is not None else ()
    return LayersInTraining(tuple(penalized or ()), tuple(dropout or ()), momentum, tuple(norms or ()) if norm and norm.recalibrate else ())


@contextmanager
def training_settings(model: tf_keras.Model, config: FineTuningConfig) -> Iterator[LayersInTraining]:
    """Sets what the config asks for, and everything back as it was; compile the model before, fit it within."""
    reached = layers_in_training(model, config)
    penalty, norm = config.regularization, config.batch_normalization
    changed: list[tuple[Any, str, float]] = []

    def change(layer: Any, attribute: str, value: float) -> None:
        changed.append((layer, attribute, getattr(layer, attribute)))
        setattr(layer, attribute, value)

    if penalty is not None and penalty.dropout is not None:
        for layer in _dropout_layers(model):
            change(layer, "rate", penalty.dropout)
    if norm is not None and norm.momentum is not None:
        for layer in norm_layers(model):
            change(layer, "momentum", norm.momentum)
    losses = len(model._callable_losses)
    if penalty is not None and reached.penalized:
        model.add_loss(_penalty(penalty, kernels(model)))
    try:
        yield reached
    finally:
        for layer, attribute, value in changed:
            setattr(layer, attribute, value)
        if changed or reached.penalized:
            del model._callable_losses[losses:]  # Keras has add_loss, but nothing to take one back
            model._reset_compile_cache()  # the functions that were traced hold the settings


def kernels(model: tf_keras.Model) -> list[tf.Variable]:
    """Weights that multiply: kernels of Dense, convolutions and recurrent layers; no biases, normalizations or embeddings."""
    return [v for v in model.trainable_weights if v.name.removesuffix(":0").endswith("kernel")]


def norm_layers(model: tf_keras.Model) -> list[Any]:
    """BatchNormalization layers that train, wrapped and nested ones too."""
    return [x for x in model.submodules if isinstance(x, layers.BatchNormalization) and x.trainable]


def has_random_layers(model: tf_keras.Model) -> bool:
    """Whether a layer draws numbers while training."""
    return any(isinstance(x, tf_keras.__internal__.layers.BaseRandomLayer) for x in model.submodules)


def _dropout_layers(model: tf_keras.Model) -> list[Any]:
    return [x for x in model.submodules if isinstance(x, _DROPOUT)]


def _penalty(config: Regularization, variables: list[tf.Variable]) -> Callable[[], tf.Tensor]:
    regularizer = tf_keras.regularizers.L1L2(config.l1, config.l2)
    return lambda: tf.add_n([regularizer(variable) for variable in variables])

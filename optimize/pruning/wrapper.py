"""tfmot's pruning wrapper around the layers of a model, made to keep their names, to pass Keras masks on and to prune any block."""

import inspect
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from tensorflow_model_optimization.python.core.sparsity.keras.pruning_impl import Pruning
from tensorflow_model_optimization.python.core.sparsity.keras.pruning_wrapper import PruneLowMagnitude

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.pruning.schedule import schedule_in_steps
from tfx_edge.schemas import EdgeError, PruningConfig
from tfx_edge.schemas.granularity import Block, Granularity, MOfN


class PrunedLayer(PruneLowMagnitude):
    """Prunes the wrapped layer's kernels while it trains.

    tfmot's own wrapper drops the mask that an Embedding makes, so that padding would be trained on, and hands a mask to
    layers that take none, which fails. tfmot offers the class as a function alone, hence the import from inside.
    """

    def __init__(self, layer: tf_keras.layers.Layer, **kwargs: Any) -> None:
        """Takes the layer's name, by which Keras names the model's outputs, and with them losses, metrics and labels."""
        super().__init__(layer, **kwargs)
        self._name = layer.name

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        if list(self.block_size) != [1, 1]:
            self.pruning_obj = _Blocks(
                training_step_fn=lambda: self.pruning_step,
                pruning_vars=self.pruning_vars,
                pruning_schedule=self.pruning_schedule,
                block_size=self.block_size,
                block_pooling_type=self.block_pooling_type,
            )

    def call(self, inputs: Any, training: Any = None, mask: tf.Tensor | None = None, **kwargs: Any) -> Any:
        if mask is not None and "mask" in inspect.signature(self.layer.call).parameters:
            kwargs["mask"] = mask
        return super().call(inputs, training=training, **kwargs)

    def compute_mask(self, inputs: Any, mask: tf.Tensor | None = None) -> Any:
        return self.layer.compute_mask(inputs, mask) if self.layer.supports_masking else None


class _Blocks(Pruning):
    """Masks whole blocks of matrices that they divide; tfmot squeezes the matrix, and fails where a side is one element or block."""

    def _maybe_update_block_mask(self, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        (rows, columns), (height, width) = weights.shape, self._block_size
        tiles = tf.reshape(tf.abs(weights), [rows // height, height, columns // width, width])
        pool = tf.reduce_max if self._block_pooling_type == "MAX" else tf.reduce_mean
        threshold, mask = self._update_mask(pool(tiles, axis=(1, 3)))
        return threshold, tf.repeat(tf.repeat(mask, height, axis=0), width, axis=1)


def wrap_layers(copy: tf_keras.Model, targets: Mapping[str, float], config: PruningConfig, steps: int) -> tf_keras.Model:
    """A model of the same layers, some of them in pruning wrappers.

    Args:
        copy: a model of one's own: the result shares its layers.
        targets: names of the layers to wrap to their sparsity.
        config: the schedule and the granularity.
        steps: of the whole training.

    Raises:
        EdgeError: tfmot can't call one of the layers.
    """

    def wrap(layer: tf_keras.layers.Layer) -> tf_keras.layers.Layer:
        if layer.name not in targets:
            return layer
        schedule = schedule_in_steps(config.schedule, targets[layer.name], steps, calls=len(layer.inbound_nodes))
        return PrunedLayer(layer, pruning_schedule=schedule, **_units(config.granularity))

    try:
        return tf_keras.models.clone_model(copy, clone_function=wrap)
    except Exception as error:  # tfmot's wrapper raises anything on a layer that it can't call
        raise EdgeError(
            f"model {copy.name!r}: tfmot can't wrap one of the layers {', '.join(sorted(targets))} ({one_line(error)}); "
            "select fewer with PruningConfig.layers"
        ) from error


def _units(granularity: Granularity) -> dict[str, Any]:
    """The granularity as tfmot's arguments."""
    if isinstance(granularity, Block):
        pooling = {"average": "AVG", "maximum": "MAX"}[granularity.pooling]
        return {"block_size": (granularity.inputs, granularity.outputs), "block_pooling_type": pooling}
    if isinstance(granularity, MOfN):  # tfmot sets these masks once, at the first step, whatever the schedule
        return {"sparsity_m_by_n": (granularity.zeros, granularity.group)}
    return {}

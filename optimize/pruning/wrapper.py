"""tfmot's pruning wrapper, made to pass Keras masks on."""

import inspect
from typing import Any

import tensorflow as tf
from tensorflow_model_optimization.python.core.sparsity.keras.pruning_wrapper import PruneLowMagnitude


class PrunedLayer(PruneLowMagnitude):
    """Prunes the wrapped layer's kernels while it trains.

    tfmot's own wrapper drops the mask that an Embedding makes, so that padding would be trained on, and hands a mask to
    layers that take none, which fails. tfmot offers the class as a function alone, hence the import from inside.
    """

    def call(self, inputs: Any, training: Any = None, mask: tf.Tensor | None = None, **kwargs: Any) -> Any:
        if mask is not None and "mask" in inspect.signature(self.layer.call).parameters:
            kwargs["mask"] = mask
        return super().call(inputs, training=training, **kwargs)

    def compute_mask(self, inputs: Any, mask: tf.Tensor | None = None) -> Any:
        return self.layer.compute_mask(inputs, mask) if self.layer.supports_masking else None

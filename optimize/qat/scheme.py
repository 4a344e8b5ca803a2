"""tfmot's 8-bit scheme with two of its quantizers replaced.

1. The range of an activation starts at that of the first batch. tfmot's starts at -6 to 6 and moves by a thousandth a batch, so
   after a short training it still clips what is larger and wastes the integers on what is smaller.
2. A convolution whose weights share values gets one range for all its channels. tfmot's has one a channel, which makes several
   integers out of one value: 16 values become up to 16 times the channels, and the gain in compressed size is lost. The range is
   kept once a channel, since the converter multiplies it by the scale of a folded BatchNormalization.
"""

from collections.abc import Collection
from typing import Any

import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras
from tensorflow_model_optimization.python.core.quantization.keras import quantizers, utils
from tensorflow_model_optimization.python.core.quantization.keras.default_8bit import (
    default_8bit_quantize_layout_transform,
    default_8bit_quantize_registry,
    default_8bit_quantize_scheme,
    default_8bit_quantizers,
)

_DECAY = 0.99


@tf_keras.saving.register_keras_serializable("tfx_edge")
class RunningRange(quantizers.MovingAverageQuantizer):
    """Quantizes an activation by the moving average of its minimum and maximum, from the first batch on."""

    def build(self, tensor_shape: Any, name: str, layer: Any) -> dict[str, tf.Variable]:
        seen = layer.add_weight(name + "_seen", shape=(), initializer="zeros", trainable=False)
        return {**super().build(tensor_shape, name, layer), "seen": seen}

    def __call__(self, inputs: tf.Tensor, training: bool, weights: dict[str, tf.Variable], **kwargs: Any) -> tf.Tensor:
        low, high = weights["min_var"], weights["max_var"]
        if training:
            decay = _DECAY * weights["seen"]
            batch_low, batch_high = tf.minimum(tf.reduce_min(inputs), 0.0), tf.maximum(tf.reduce_max(inputs), 0.0)
            low = low.assign(decay * low + (1 - decay) * batch_low)
            high = high.assign(decay * high + (1 - decay) * batch_high)
            with tf.control_dependencies([low, high]):
                weights["seen"].assign(1.0)
        high = tf.where(high - low < 1e-6, low + 1.0, high)  # a dead layer, whose scale would be 0
        return tf.quantization.fake_quant_with_min_max_vars(inputs, low, high, self.num_bits, self.narrow_range)


@tf_keras.saving.register_keras_serializable("tfx_edge")
class OneRange(default_8bit_quantizers.Default8BitConvWeightsQuantizer):
    """Quantizes a convolution's weights by the largest magnitude in all channels."""

    def __call__(self, inputs: tf.Tensor, training: bool, weights: dict[str, tf.Variable], **kwargs: Any) -> tf.Tensor:
        low, high = weights["min_var"], weights["max_var"]
        if training:
            largest = tf.fill(high.shape, tf.reduce_max(tf.abs(inputs)))
            low, high = low.assign(-largest), high.assign(largest)
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(inputs, low, high, self.num_bits, self.narrow_range)


@tf_keras.saving.register_keras_serializable("tfx_edge")
class EdgeQuantizeConfig(tfmot.quantization.keras.QuantizeConfig):
    """Another QuantizeConfig with its quantizers replaced."""

    def __init__(self, inner: Any, one_range: bool = False) -> None:
        self.inner, self.one_range = inner, one_range

    def _replaced(self, quantizer: Any) -> Any:
        if type(quantizer) is quantizers.MovingAverageQuantizer:
            return RunningRange(**quantizer.get_config())
        if self.one_range and isinstance(quantizer, default_8bit_quantizers.Default8BitConvWeightsQuantizer):
            return OneRange()
        return quantizer

    def get_weights_and_quantizers(self, layer: Any) -> list[tuple[Any, Any]]:
        return [(weight, self._replaced(quantizer)) for weight, quantizer in self.inner.get_weights_and_quantizers(layer)]

    def get_activations_and_quantizers(self, layer: Any) -> list[tuple[Any, Any]]:
        return [(activation, self._replaced(quantizer)) for activation, quantizer in self.inner.get_activations_and_quantizers(layer)]

    def set_quantize_weights(self, layer: Any, quantize_weights: Any) -> None:
        self.inner.set_quantize_weights(layer, quantize_weights)

    def set_quantize_activations(self, layer: Any, quantize_activations: Any) -> None:
        self.inner.set_quantize_activations(layer, quantize_activations)

    def get_output_quantizers(self, layer: Any) -> list[Any]:
        return [self._replaced(quantizer) for quantizer in self.inner.get_output_quantizers(layer)]

    def get_config(self) -> dict[str, Any]:
        return {"inner": utils.serialize_keras_object(self.inner), "one_range": self.one_range}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "EdgeQuantizeConfig":
        with tfmot.quantization.keras.quantize_scope():
            return cls(utils.deserialize_keras_object(config["inner"]), config["one_range"])


class EdgeScheme(default_8bit_quantize_scheme.Default8BitQuantizeScheme):
    """The scheme for `tfmot.quantization.keras.quantize_apply`."""

    def __init__(self, one_range: Collection[str]) -> None:
        """Plans it.

        Args:
            one_range: names of the layers whose weights get one range for all channels.
        """
        super().__init__()
        self._one_range = frozenset(one_range)

    def get_layout_transformer(self) -> Any:
        return _Layout(self._one_range)

    def get_quantize_registry(self) -> Any:
        return _Registry(self._one_range)


class _Registry(default_8bit_quantize_registry.Default8BitQuantizeRegistry):
    def __init__(self, one_range: frozenset[str]) -> None:
        super().__init__()
        self._one_range = one_range

    def get_quantize_config(self, layer: Any) -> EdgeQuantizeConfig:
        return EdgeQuantizeConfig(super().get_quantize_config(layer), layer.name in self._one_range)


class _Layout(default_8bit_quantize_layout_transform.Default8BitQuantizeLayoutTransform):
    def __init__(self, one_range: frozenset[str]) -> None:
        self._one_range = one_range

    def apply(self, model: Any, layer_quantize_map: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Wraps the configs that the layout's own transforms have chosen, when all of them are through."""
        model, chosen = super().apply(model, layer_quantize_map)
        for name, metadata in chosen.items():
            if metadata.get("quantize_config") is not None:
                metadata["quantize_config"] = EdgeQuantizeConfig(metadata["quantize_config"], name in self._one_range)
        return model, chosen

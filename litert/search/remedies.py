"""What is tried before any operator is given up: other configs of the same scheme, which cost no bytes.

Each is a function of a config to another; one that gives the same config back has nothing to do.
"""

from collections.abc import Callable, Mapping

from tfx_edge.litert.search.configs import changed
from tfx_edge.schemas import QuantizationConfig
from tfx_edge.schemas.accuracy import Remedy
from tfx_edge.schemas.corrections import ORDER, AdaRound, BiasCorrection, Correction, CrossLayerEqualization
from tfx_edge.schemas.ranges import RangeMethod

Change = Callable[[QuantizationConfig], QuantizationConfig]


def channel_scales(config: QuantizationConfig) -> QuantizationConfig:
    """One scale a channel of the weights instead of one for all of them."""
    return changed(config, granularity="channel")


def ranges_by(method: RangeMethod) -> Change:
    """Activation ranges by another method; rules for single tensors stay as they are."""

    def change(config: QuantizationConfig) -> QuantizationConfig:
        if not config.needs_ranges:
            return config
        return changed(config, ranges=config.ranges.model_copy(update={"method": method}))

    return change


def corrected_by(correction: Correction) -> Change:
    """One correction more; the config's own of the same kind stays as it is."""

    def change(config: QuantizationConfig) -> QuantizationConfig:
        if any(other.kind == correction.kind for other in config.corrections):
            return config
        return changed(config, corrections=sorted((*config.corrections, correction), key=lambda other: ORDER.index(other.kind)))

    return change


def without_fitted(config: QuantizationConfig) -> QuantizationConfig:
    """Without the corrections that make up for what rounding does to all layers together.

    Learned rounding and corrected biases are as wrong for an operator that stays float as they are right for one that doesn't;
    equalized channels compute the same in float.
    """
    return changed(config, corrections=tuple(other for other in config.corrections if other.kind not in FITTED))


RANGE_METHODS: tuple[Remedy, ...] = ("percentile", "moving_average", "mse", "entropy")
"""Of these one is in force."""

FITTED: tuple[Remedy, ...] = ("ada_round", "bias_correction")
"""Those that hold where all operators are quantized."""

REMEDIES: Mapping[Remedy, Change] = {
    "channel_scales": channel_scales,
    "percentile": ranges_by("percentile"),
    "moving_average": ranges_by("moving_average"),
    "mse": ranges_by("mse"),
    "entropy": ranges_by("entropy"),
    "cross_layer_equalization": corrected_by(CrossLayerEqualization()),
    "ada_round": corrected_by(AdaRound()),
    "bias_correction": corrected_by(BiasCorrection()),
}
"""By the names of `AccuracyTarget.escalation`; `mixed` and the schemes aren't among them, since they change what operators compute in."""

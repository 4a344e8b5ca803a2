"""Quantizer: techniques that change a float model's constants so that plain rounding of them loses less."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config

_KIND = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the corrections apart


class CrossLayerEqualization(Config):
    """Moves scale from one layer's channels into the next layer's weights, so that all channels use the integers alike.

    The model computes what it did; no data is needed. It gains most with granularity `tensor` (Nagel et al. 2019,
    https://arxiv.org/abs/1906.04721).
    """

    model_config = _KIND

    kind: Literal["cross_layer_equalization"] = "cross_layer_equalization"
    iterations: int = Field(
        default=50, ge=1, description="Passes over the pairs of layers, at most; it stops where nothing moves any more."
    )


class AdaRound(Config):
    """Learns for each weight whether to round it up or down, by the output of its layer instead of by the weight itself.

    Nagel et al. 2020, https://arxiv.org/abs/2004.10568.
    """

    model_config = _KIND

    kind: Literal["ada_round"] = "ada_round"
    examples: int = Field(default=256, ge=8, description="Calibration examples that it learns from, at most.")
    rows: int = Field(
        default=4096, ge=64, description="Inputs of a layer that it learns from, at most: examples, or positions of a convolution in them."
    )
    iterations: int = Field(default=1000, ge=1, description="Steps of Adam a layer.")
    batch_size: int = Field(default=256, ge=1, description="Inputs of a layer in a step.")
    learning_rate: float = Field(default=0.03, gt=0, description="Of Adam.")
    regularization: float = Field(
        default=0.1, gt=0, description="Weight of the term that drives each weight to one of its two integers, against the output's error."
    )
    inputs: Literal["quantized", "float"] = Field(
        default="quantized",
        description="What a layer gets while its rounding is learned: its input in the model quantized so far, or in the float model.",
    )
    seed: int = Field(default=0, ge=0, description="Draws the inputs that it learns from and those of each step.")


class BiasCorrection(Config):
    """Takes from each layer's bias what quantization shifted the mean of its output by (Nagel et al. 2019)."""

    model_config = _KIND

    kind: Literal["bias_correction"] = "bias_correction"
    examples: int = Field(default=256, ge=1, description="Calibration examples that the means are taken over, at most.")


Correction = Annotated[CrossLayerEqualization | AdaRound | BiasCorrection, Field(discriminator="kind")]

ORDER = ("cross_layer_equalization", "ada_round", "bias_correction")
"""The order in which they work: ranges are taken of the equalized model, and the shift of a mean is known when all weights are."""


def check_corrections(corrections: Sequence[Correction], schemes: Iterable[str], *, trained: bool) -> None:
    """Checks that corrections fit each other and what the model is quantized to.

    Args:
        corrections: in the order in which they are asked for.
        schemes: those that operators get.
        trained: whether training quantizes the model.

    Raises:
        ValueError: they don't.
    """
    if not corrections:
        return
    kinds = [correction.kind for correction in corrections]
    if kinds != [kind for kind in ORDER if kind in kinds]:
        raise ValueError(f"corrections {', '.join(kinds)}; each stands once at most, in the order {', '.join(ORDER)}")
    if trained:
        raise ValueError(f"corrections {', '.join(kinds)} with qat, whose rounding is trained; leave one of the two out")
    kinds_of_weights = sorted(set(schemes))
    if set(kinds_of_weights) <= {"float32", "float16"}:
        raise ValueError(
            f"corrections {', '.join(kinds)} with scheme {' and '.join(kinds_of_weights)}; they are for schemes that make weights integers"
        )


class CorrectedLayer(Config):
    """What a correction did to one layer."""

    kind: Literal["cross_layer_equalization", "ada_round", "bias_correction"]
    op: str = Field(description="LiteRT's name of the operator, for example CONV_2D.")
    tensor: str = Field(description="Name of its first output in the float flatbuffer.")
    before: float | None = Field(
        default=None,
        description="cross_layer_equalization: how well the channels fill the integers of this layer and the next, 1 is fully. "
        "ada_round: mean squared error of the output over that of rounding to nearest, on inputs held out, so 1. "
        "bias_correction: mean over the channels of the absolute shift of the output's mean.",
    )
    after: float | None = Field(default=None, description="The same, corrected.")
    skipped: str | None = Field(default=None, description="Why nothing was done.")

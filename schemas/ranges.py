"""Calibrated ranges: how they are taken, and what they are."""

import re
from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config

_PERCENTILE = 99.99

RangeMethod = Literal["min_max", "moving_average", "percentile", "mse", "entropy"]

METHODS = (
    "min_max: the smallest and largest value of all. moving_average: these averaged over eight groups of examples. "
    "percentile: between the values below and above which a share of them lies. mse: where rounding and clipping together lose "
    "least. entropy: where the quantized distribution differs least from the true one (Kullback-Leibler)."
)


class RangeRule(Config):
    """Another method for the tensors that it names; later rules win over earlier ones and over the config's own method."""

    tensor: str = Field(min_length=1, description="Regular expression found in the tensor's name in the float flatbuffer.")
    method: RangeMethod = Field(description=METHODS)
    percentile: float = Field(default=_PERCENTILE, gt=50, le=100, description="percentile: see RangeConfig.")

    def check(self) -> None:
        try:
            re.compile(self.tensor)
        except re.error as error:
            raise ValueError(f"tensor {self.tensor!r} isn't a regular expression: {error}") from None
        if self.method != "percentile" and self.percentile != _PERCENTILE:
            raise ValueError(
                f"percentile {self.percentile} with method {self.method!r}, which has none; set method 'percentile', or leave it out"
            )


class RangeConfig(Config):
    """How the range of each activation comes from what it took over the calibration data."""

    method: RangeMethod = Field(default="min_max", description=METHODS)
    percentile: float = Field(
        default=_PERCENTILE,
        gt=50,
        le=100,
        description="percentile: this many percent of the values lie below the range's end, and as many above its start.",
    )
    rules: tuple[RangeRule, ...] = Field(default=(), description="Tensors with a method of their own; later rules win.")
    agreement: float = Field(
        default=0.25,
        gt=0,
        description="Two halves of the calibration data must give ranges whose ends are no further apart than this share of the range's "
        "width; the plan warns otherwise, and says how many examples would do.",
    )

    @property
    def methods(self) -> frozenset[RangeMethod]:
        """Every method that may be needed."""
        return frozenset({self.method, *(rule.method for rule in self.rules)})

    def rule(self, tensor: str) -> RangeRule:
        """What applies to a tensor."""
        percentile = self.percentile if self.method == "percentile" else _PERCENTILE
        own = RangeRule(tensor=".*", method=self.method, percentile=percentile)
        return next((rule for rule in reversed(self.rules) if re.search(rule.tensor, tensor)), own)


class TensorRange(Config):
    """The range in which a float tensor is quantized."""

    min: float
    max: float

    def check(self) -> None:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; a range goes up")


class TensorRanges(Config):
    """`ranges.json` of a QuantizationPlan artifact."""

    ranges: dict[str, TensorRange] = Field(description="Activations by their tensor name in the float flatbuffer.")
    examples: int = Field(ge=0, description="Calibration examples that the ranges cover.")

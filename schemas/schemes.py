"""What quantization can make of an operator, and rules that say which operators get what."""

import re
from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config

Scheme = Literal["float32", "float16", "dynamic_range", "int8", "int16x8", "int8_weights"]
Granularity = Literal["channel", "tensor"]
IoType = Literal["float32", "int8", "int16"]

CALIBRATED: frozenset[Scheme] = frozenset({"int8", "int16x8"})
"""Those whose activations have calibrated ranges."""

COMPUTED_IN_FLOAT: frozenset[Scheme] = frozenset({"float32", "float16", "int8_weights"})

SCHEMES = (
    "float32: as trained. float16: weights in half precision. dynamic_range: int8 weights, activations quantized while running. "
    "int8: weights and activations, from calibrated ranges. int16x8: the same with 16-bit activations. int8_weights: int8 weights, "
    "computed in float."
)


class SchemeRule(Config):
    """Another scheme for the operators that it names; later rules win over earlier ones and over the config's own scheme."""

    operator: str = Field(default="*", min_length=1, description="LiteRT's name, for example CONV_2D; * for every operator.")
    tensor: str = Field(default=".*", min_length=1, description="Regular expression found in the name of the operator's first output.")
    scheme: Scheme = Field(description=SCHEMES)
    granularity: Granularity = Field(default="channel", description="One scale a channel of the weights, or one for all of them.")

    def check(self) -> None:
        try:
            re.compile(self.tensor)
        except re.error as error:
            raise ValueError(f"tensor {self.tensor!r} isn't a regular expression: {error}") from None

    def names(self, operator: str, tensor: str) -> bool:
        """Whether it is about an operator of this name with this output."""
        return self.operator in ("*", operator) and re.search(self.tensor, tensor) is not None

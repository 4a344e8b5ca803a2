"""What quantization can make of an operator, and rules that say which operators get what."""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config

Scheme = Literal["float32", "float16", "dynamic_range", "int8", "int16x8", "int8_weights", "int4_weights", "int4_dynamic_range"]
Granularity = Literal["channel", "tensor", "block_32", "block_64", "block_128", "block_256"]
IoType = Literal["float32", "int8", "int16"]

CALIBRATED: frozenset[Scheme] = frozenset({"int8", "int16x8"})
"""Those whose activations have calibrated ranges."""

COMPUTED_IN_FLOAT: frozenset[Scheme] = frozenset({"float32", "float16", "int8_weights", "int4_weights"})

SCHEMES = (
    "float32: as trained. float16: weights in half precision. dynamic_range: int8 weights, activations quantized while running. "
    "int8: weights and activations, from calibrated ranges. int16x8: the same with 16-bit activations. int8_weights: int8 weights, "
    "computed in float. int4_weights, int4_dynamic_range: as int8_weights and dynamic_range, with 4-bit weights of convolutions and "
    "dense layers, on runtimes from TensorFlow Lite 2.17 on."
)
GRANULARITIES = (
    "One scale a channel of the weights, or one for all of them; with int4_dynamic_range also one a block of so many of a dense "
    "layer's weights, which loses less and costs two bytes a block."
)


def check_granularity(scheme: Scheme, granularity: Granularity) -> None:
    """Refuses blocks where litert-quantizer would leave every weight in float.

    Raises:
        ValueError: blocks with a scheme other than `int4_dynamic_range`.
    """
    if granularity.startswith("block_") and scheme != "int4_dynamic_range":
        raise ValueError(
            f"granularity {granularity!r} with scheme {scheme!r}; blocks go with 'int4_dynamic_range' alone: set 'channel' or 'tensor'"
        )


class SchemeRule(Config):
    """Another scheme for the operators that it names; later rules win over earlier ones and over the config's own scheme."""

    operator: str = Field(default="*", min_length=1, description="LiteRT's name, for example CONV_2D; * for every operator.")
    tensor: str = Field(default=".*", min_length=1, description="Regular expression found in the name of the operator's first output.")
    scheme: Scheme = Field(description=SCHEMES)
    granularity: Granularity = Field(default="channel", description=GRANULARITIES)

    def check(self) -> None:
        check_granularity(self.scheme, self.granularity)
        try:
            re.compile(self.tensor)
        except re.error as error:
            raise ValueError(f"tensor {self.tensor!r} isn't a regular expression: {error}") from None

    def names(self, operator: str, tensor: str) -> bool:
        """Whether it is about an operator of this name with this output."""
        return self.operator in ("*", operator) and re.search(self.tensor, tensor) is not None


def scheme_of(scheme: Scheme, rules: Sequence[SchemeRule], operator: str, tensor: str) -> Scheme:
    """What an operator gets: the last rule that names it decides, else the config's own scheme.

    >>> from tfx_edge.schemas import SchemeRule
    >>> from tfx_edge.schemas.schemes import scheme_of
    >>> scheme_of("int8", [SchemeRule(operator="SOFTMAX", scheme="float32")], "SOFTMAX", "probabilities")
    'float32'
    """
    return next((rule.scheme for rule in reversed(rules) if rule.names(operator, tensor)), scheme)

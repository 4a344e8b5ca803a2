"""Quantizer: the scheme asked for, and the plan that the exporter carries out without any data."""

from typing import Any, Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.qat import QatConfig
from tfx_edge.schemas.schemes import CALIBRATED, SCHEMES, Granularity, IoType, Scheme, SchemeRule

Method = Literal["ptq", "qat"]


class QuantizationConfig(Config):
    """Quantization of the whole model, after training or, with `qat`, by training."""

    scheme: Scheme = Field(default="int8", description=SCHEMES)
    io_type: IoType = Field(
        default="float32",
        description="The type of the model's inputs and outputs: int8 with scheme int8 and int16 with int16x8 spare a conversion.",
    )
    granularity: Granularity = Field(default="channel", description="One scale a channel of the weights, or one for all of them.")
    rules: tuple[SchemeRule, ...] = Field(default=(), description="Operators with a scheme of their own; later rules win.")
    batch_size: int = Field(default=32, ge=1, description="Examples a step while activation ranges are collected.")
    qat: QatConfig | None = Field(
        default=None,
        description="int8 scheme: quantization-aware training, which takes its ranges from the training examples and needs no calibration "
        "data; None quantizes after training.",
    )

    @property
    def method(self) -> Method:
        """Whether the ranges come from calibration after training, or from training itself."""
        return "ptq" if self.qat is None else "qat"

    @property
    def needs_calibration(self) -> bool:
        """Whether activations are quantized by ranges that only calibration data can tell."""
        return self.qat is None and any(scheme in CALIBRATED for scheme in (self.scheme, *(rule.scheme for rule in self.rules)))

    def check(self) -> None:
        if self.io_type != "float32" and (self.scheme, self.io_type) not in (("int8", "int8"), ("int16x8", "int16")):
            raise ValueError(
                f"io_type {self.io_type!r} with scheme {self.scheme!r}; 'int8' goes with scheme 'int8', 'int16' with 'int16x8', and "
                "'float32' with any"
            )
        if self.qat is None:
            return
        if self.scheme != "int8":
            raise ValueError(f"qat with scheme {self.scheme!r}; quantization-aware training is for scheme 'int8' alone")
        if self.rules or self.granularity != "channel":
            raise ValueError("qat with rules or granularity 'tensor'; which layers it quantizes says QatConfig.layers: leave these out")


class TensorRange(Config):
    """The smallest and largest value that a float tensor took over the calibration data."""

    min: float
    max: float

    def check(self) -> None:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; a range goes up")


class TensorRanges(Config):
    """`ranges.json` of a QuantizationPlan artifact."""

    ranges: dict[str, TensorRange] = Field(description="Activations by their tensor name in the float flatbuffer.")
    examples: int = Field(ge=0, description="Calibration examples that the ranges cover.")


class FloatOp(Config):
    """An operator of the flatbuffer that runs in float after quantization, and why."""

    op: str = Field(description="LiteRT's name of the operator, for example SOFTMAX.")
    tensor: str = Field(description="Name of its first output.")
    reason: str


class QuantizationPlan(Config):
    """`plan.json`: all that turns the float flatbuffer into the quantized one, but the ranges."""

    config: QuantizationConfig
    method: Method = Field(
        default="ptq",
        description="ptq: litert-quantizer carries out the recipe. qat: the model emulates int8, and TFLiteConverter takes it at its word.",
    )
    recipe: tuple[dict[str, Any], ...] = Field(
        description="Recipe of litert-quantizer: entries of regex, operation and op_config; empty for float32 and method qat."
    )
    float_ops: tuple[FloatOp, ...] = Field(description="Every operator that stays float.")
    float_model_digest: str = Field(description="sha256 of the float flatbuffer that the plan was made for; it fits no other.")
    calibration_digest: str | None = Field(default=None, description="Digest of the calibration data, where the scheme needs some.")

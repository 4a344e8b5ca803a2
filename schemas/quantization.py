"""Quantizer: the scheme asked for, and the plan that the exporter carries out without any data."""

from typing import Any, Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.qat import QatConfig

Scheme = Literal["float32", "float16", "dynamic_range", "int8"]
Method = Literal["ptq", "qat"]


class QuantizationConfig(Config):
    """Quantization of the whole model, after training or, with `qat`, by training."""

    scheme: Scheme = Field(
        default="int8",
        description="float32: as trained. float16: weights in half precision. dynamic_range: int8 weights, activations quantized "
        "while running. int8: weights and activations, from calibrated ranges.",
    )
    io_type: Literal["float32", "int8"] = Field(
        default="float32", description="int8 scheme: the type of the model's inputs and outputs; int8 spares the device the conversion."
    )
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
        return self.scheme == "int8" and self.qat is None

    def check(self) -> None:
        if self.io_type == "int8" and self.scheme != "int8":
            raise ValueError(f"io_type 'int8' with scheme {self.scheme!r}; only scheme 'int8' can have int8 inputs and outputs")
        if self.qat is not None and self.scheme != "int8":
            raise ValueError(f"qat with scheme {self.scheme!r}; quantization-aware training is for scheme 'int8' alone")


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

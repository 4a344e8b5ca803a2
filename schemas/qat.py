"""Quantization-aware training: which layers, what to keep of earlier compression, and what came of it."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.training import FineTuningConfig


class QatConfig(Config):
    """Fine-tuning with int8 rounding emulated, so that the weights learn to do with it."""

    layers: tuple[str, ...] = Field(
        default=("*",),
        min_length=1,
        description="Shell patterns over layer names; each must match a layer. int8 isn't emulated of the other layers, nor of one that "
        "tfmot has no 8-bit form of.",
    )
    preserve: Literal["auto", "nothing", "sparsity", "clusters", "sparsity_and_clusters"] = Field(
        default="auto",
        description="What to keep of the incoming kernels: sparsity (PQAT) keeps their zeros, clusters (CQAT) keeps equal weights equal, "
        "both is PCQAT; auto keeps in each kernel what it holds.",
    )
    freeze_batch_norm: bool = Field(
        default=True,
        description="BatchNormalization keeps its moving averages and its scale while training: the device folds them into the weights, "
        "and a short training would leave the averages far off.",
    )
    fine_tuning: FineTuningConfig = Field(description="The training; a tenth of the learning rate that trained the model, or less.")


class QatLayer(Config):
    """What quantization-aware training did to one layer; the numbers are of its kernel (a SeparableConv2D's pointwise one), in float."""

    layer: str
    type: str = Field(description="Keras class of the layer.")
    emulated: bool = Field(
        description="Its rounding to int8 is emulated in training. Where it isn't, the layer is float on the device too, unless what "
        "surrounds it is int8: then the converter quantizes it unasked, by the range of its weights. plan.json lists the float operators."
    )
    kept: tuple[Literal["sparsity", "clusters"], ...] = Field(default=(), description="What was kept of the kernel.")
    zeros_before: int = Field(default=0, ge=0)
    zeros: int = Field(default=0, ge=0)
    values_before: int = Field(default=0, ge=0, description="Distinct values before.")
    values: int = Field(default=0, ge=0, description="Distinct values after; the flatbuffer has no more integers, by kernel or channel.")
    by_channel: bool = Field(default=False, description="Values are counted by output channel, each of which has a scale of its own.")
    reason: str = Field(default="", description="Why it isn't emulated, where it isn't.")


class QatReport(Config):
    """What quantization-aware training did."""

    config: QatConfig
    technique: Literal["QAT", "PQAT", "CQAT", "PCQAT"]
    layers: tuple[QatLayer, ...] = Field(description="Every layer but the inputs, in the model's order.")

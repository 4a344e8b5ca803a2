"""LowRankFactorizer: which layers become two or three thinner ones, and what came of it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.training import FineTuningConfig


class EnergyRank(Config):
    """Each layer gets the lowest rank that keeps a share of its kernel's energy, the sum of its squared weights."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the rules apart

    kind: Literal["energy"] = "energy"
    energy: float = Field(default=0.9, gt=0, le=1, description="Share of each kernel's squared singular values that is kept.")


class MacBudget(Config):
    """All layers get ranks of one and the same energy, the highest with which their multiplications fit the budget."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the rules apart

    kind: Literal["mac_budget"] = "mac_budget"
    share: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="Share of the selected layers' multiply-accumulates that may remain.",
    )


class LowRankConfig(Config):
    """Truncated SVD of Dense and 1x1 Conv2D kernels, and for larger Conv2D kernels a spatial or a Tucker-2 factorization."""

    rank: Annotated[EnergyRank | MacBudget, Field(discriminator="kind")] = Field(default=EnergyRank(), description="How ranks are chosen.")
    conv: Literal["spatial", "tucker2"] = Field(
        default="tucker2",
        description="Conv2D kernels larger than 1x1. tucker2: 1x1, the kernel between fewer channels, 1x1. spatial: a column, then a row.",
    )
    layers: tuple[str, ...] = Field(
        default=("*",),
        min_length=1,
        description="Shell patterns over layer names; each must match a layer. A layer that can't be factorized is left and reported.",
    )
    min_saving: float = Field(
        default=0.1, ge=0, lt=1, description="A layer is factorized only if it saves this share of its weights and multiplications."
    )
    fine_tuning: FineTuningConfig = Field(description="Training after the factorization.")


class LayerFactorization(Config):
    """What was done with one layer."""

    layer: str
    type: str = Field(description="Keras class of the layer.")
    method: Literal["svd", "spatial", "tucker2"] | None = Field(default=None, description="None where the layer was left.")
    ranks: tuple[int, ...] = Field(default=(), description="One of svd and spatial; of tucker2 the input and the output channels' rank.")
    weights: int = Field(ge=0, description="Elements of the kernel before.")
    weights_after: int = Field(ge=0, description="Elements of the factors together.")
    macs: int = Field(ge=0, description="Multiply-accumulates for one example before.")
    macs_after: int = Field(ge=0, description="The same after.")
    error: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Before fine-tuning: norm of the kernel's difference to its reconstruction over its own.",
    )
    reason: str = Field(default="", description="Why the layer was left, where it was.")


class LowRankReport(Config):
    """`low_rank.json` beside a factorized model."""

    config: LowRankConfig
    layers: tuple[LayerFactorization, ...] = Field(description="Every layer with weights, in the model's order.")
    macs: int = Field(ge=0, description="Multiply-accumulates of these layers for one example before.")
    macs_after: int = Field(ge=0, description="The same after.")

"""Pruner: how much of which layers becomes zero, and what came of it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.training import FineTuningConfig


class PolynomialDecay(Config):
    """Sparsity rises from initial_sparsity to the target, steeply first (Zhu and Gupta 2017, https://arxiv.org/abs/1710.01878)."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the schedules apart

    kind: Literal["polynomial_decay"] = "polynomial_decay"
    initial_sparsity: float = Field(default=0.0, ge=0, lt=1, description="Sparsity at the first pruning step.")
    power: float = Field(default=3.0, gt=0, description="Exponent of the decay.")
    begin: float = Field(default=0.0, ge=0, lt=1, description="Where pruning starts, as a share of all fine-tuning steps.")
    end: float = Field(default=0.6, gt=0, le=1, description="Where the target is reached, as a share of all fine-tuning steps.")
    frequency: int = Field(default=10, ge=1, description="Steps between two updates of the masks.")

    def check(self) -> None:
        if self.begin >= self.end:
            raise ValueError(f"begin {self.begin} must be less than end {self.end}; both are shares of all fine-tuning steps")


class ConstantSparsity(Config):
    """The target sparsity from the start of pruning on."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the schedules apart

    kind: Literal["constant"] = "constant"
    begin: float = Field(default=0.0, ge=0, lt=1, description="Where pruning starts, as a share of all fine-tuning steps.")
    frequency: int = Field(default=10, ge=1, description="Steps between two updates of the masks.")


class PruningConfig(Config):
    """Magnitude pruning: the smallest weights of each selected layer's kernel become zero while the rest is fine-tuned."""

    target_sparsity: float = Field(default=0.5, ge=0, lt=1, description="Fraction of each pruned kernel's weights that end as zero.")
    schedule: Annotated[PolynomialDecay | ConstantSparsity, Field(discriminator="kind")] = Field(
        default=PolynomialDecay(), description="How sparsity grows over the fine-tuning steps."
    )
    layers: tuple[str, ...] = Field(
        default=("*",),
        min_length=1,
        description="Shell patterns over layer names; each must match a layer. A layer that can't be pruned is left and reported.",
    )
    fine_tuning: FineTuningConfig = Field(description="Training between the updates of the masks.")

    def check(self) -> None:
        if isinstance(self.schedule, PolynomialDecay) and self.schedule.initial_sparsity > self.target_sparsity:
            raise ValueError(
                f"schedule.initial_sparsity {self.schedule.initial_sparsity} must be at most target_sparsity {self.target_sparsity}"
            )


class LayerSparsity(Config):
    """What pruning did to one layer."""

    layer: str
    type: str = Field(description="Keras class of the layer.")
    weights: int = Field(ge=0, description="Elements of the layer's prunable weights; biases are not pruned.")
    zeros: int = Field(ge=0, description="How many of them are zero.")
    sparsity: float = Field(ge=0, le=1, description="zeros / weights.")
    pruned: bool
    reason: str = Field(default="", description="Why the layer was left, where it was.")


class SparsityReport(Config):
    """`sparsity.json` beside a pruned model."""

    config: PruningConfig
    layers: tuple[LayerSparsity, ...] = Field(description="Every layer with weights, in the model's order.")
    sparsity: float = Field(ge=0, le=1, description="Zeros over all elements of the pruned layers' weights.")

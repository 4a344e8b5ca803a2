"""Distiller: what student learns what from its teacher, and what came of it."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.training import FineTuningConfig


class ScaledStudent(Config):
    """A student made of the teacher: narrower layers, fewer repeated ones."""

    width: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Times units, filters and embedding sizes, not the output's; 0.5 leaves about a quarter of the weights.",
    )
    depth: float = Field(
        default=1.0, ge=0, le=1, description="Share that is kept of each group of equal layers whose output has the shape of their input."
    )


class FeatureMatch(Config):
    """A layer of the student that is to give what a layer of the teacher gives."""

    teacher: str = Field(min_length=1, description="Name of the teacher's layer.")
    student: str | None = Field(default=None, min_length=1, description="Name of the student's; None: the same.")


class DistillationConfig(Config):
    """Knowledge distillation (Hinton et al. 2015, https://arxiv.org/abs/1503.02531): a small model learns from a large one's outputs."""

    student: ScaledStudent = Field(default=ScaledStudent(), description="The student, where none is given as a function.")
    temperature: float = Field(default=4.0, gt=0, description="Divides the logits of both; the higher, the more the unlikely classes tell.")
    alpha: float = Field(default=0.5, ge=0, le=1, description="Weight of the teacher's outputs in the loss; the labels get the rest.")
    task: Literal["classification", "regression"] | None = Field(
        default=None, description="None: classification where the loss is a cross-entropy, else regression, without a temperature."
    )
    outputs: Literal["probabilities", "logits"] | None = Field(
        default=None, description="Of a classification, what both models put out; None: what the loss says."
    )
    features: tuple[FeatureMatch, ...] = Field(
        default=(), description="Layers to match by squared error (FitNets: Romero et al. 2015, https://arxiv.org/abs/1412.6550)."
    )
    feature_weight: float = Field(default=1.0, gt=0, description="Weight of the features' squared error, the mean over all pairs.")
    fine_tuning: FineTuningConfig = Field(description="The student's training; it starts from nothing, so give it epochs.")

    def check(self) -> None:
        if self.task == "regression" and self.outputs is not None:
            raise ValueError(f"outputs {self.outputs!r} has no effect on a regression; leave it out")
        if self.feature_weight != 1 and not self.features:
            raise ValueError(f"feature_weight {self.feature_weight:g} has no effect without features; leave it out, or name features")
        if self.fine_tuning.output_losses:
            raise ValueError("fine_tuning.output_losses: distillation takes a model with one output; leave it out")


class MatchedLayers(Config):
    """Two layers whose outputs were matched."""

    teacher: str
    student: str
    projected: bool = Field(description="Whether the student's output went through a matrix first, since it has another width.")


class DistillationReport(Config):
    """`distillation.json` beside a student."""

    config: DistillationConfig
    task: Literal["classification", "regression"]
    teacher_parameters: int = Field(ge=0)
    student_parameters: int = Field(ge=0)
    temperature: float = Field(gt=0, description="1 for a regression.")
    alpha: float = Field(ge=0, le=1)
    losses: dict[str, tuple[float, ...]] = Field(description="Loss, its parts and metrics by epoch; val_ before those of validation.")
    matched: tuple[MatchedLayers, ...]

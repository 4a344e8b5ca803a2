"""Clusterer: how many values the weights of which layers may take, and what came of it."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.training import FineTuningConfig


class ClusteringConfig(Config):
    """Weight sharing: each selected kernel holds few distinct values, which fine-tuning moves (Han et al. 2015)."""

    clusters: dict[str, int] = Field(
        default={"*": 16},
        min_length=1,
        description="Shell patterns over layer names, each with the number of distinct values of a kernel; the first that matches a "
        "layer decides, and each must match one. Other layers are left; so is one that can't be clustered, with the reason.",
    )
    initialization: Literal["linear", "random", "density_based", "kmeans_plus_plus"] = Field(
        default="kmeans_plus_plus",
        description="Where the values start: evenly over the range, at random in it, evenly over the distribution, or spread by k-means++.",
    )
    kmeans_steps: int = Field(default=10, ge=0, description="Steps of k-means from there, before fine-tuning.")
    per_channel: bool = Field(
        default=False, description="Conv2D: the number holds for each output channel instead of the whole kernel. More accurate, larger."
    )
    preserve_sparsity: bool = Field(
        default=True, description="Weights that are zero stay zero; zero is then one of the values. Keeps what the Pruner did."
    )
    fine_tuning: FineTuningConfig = Field(description="Training of the shared values and of all other weights.")

    def check(self) -> None:
        least = 3 if self.preserve_sparsity else 2
        for pattern, number in self.clusters.items():
            if number < least:
                raise ValueError(f"clusters {pattern!r}: {number} is too few; expected {least} or more{', zero included' * (least > 2)}")


class ClusteredLayer(Config):
    """What clustering did to one layer. Where a layer has several kernels, the numbers of values are of the one with the most."""

    layer: str
    type: str = Field(description="Keras class of the layer.")
    weights: int = Field(ge=0, description="Elements of the layer's kernels; biases are not clustered.")
    clusters: int | None = Field(default=None, description="Distinct values allowed; None where the layer was left.")
    per_channel: bool = Field(default=False, description="Values are counted in each output channel.")
    values_before: int = Field(ge=0, description="Distinct values in a kernel before.")
    values: int = Field(ge=0, description="Distinct values in a kernel after; in a channel where per_channel.")
    zeros_before: int = Field(ge=0, description="Zeros in the kernels before.")
    zeros: int = Field(ge=0, description="Zeros after.")
    reason: str = Field(default="", description="Why the layer was left, where it was.")


class ClusteringReport(Config):
    """`clusters.json` beside a clustered model."""

    config: ClusteringConfig
    layers: tuple[ClusteredLayer, ...] = Field(description="Every layer with weights, in the model's order.")

"""Pruner: how much of which layers goes, and what came of it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.granularity import Filters, Granularity, MOfN, Unstructured, XnnpackLatency
from tfx_edge.schemas.training import FineTuningConfig

_Share = Annotated[float, Field(ge=0, lt=1)]
_XNNPACK_SPARSITY = 2 / 3  # XNNPACK runs its sparse kernels only where more of the weights are zero


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


class SensitivityScan(Config):
    """Prunes one layer at a time without training, and gives the layers that mind it least the most sparsity."""

    sparsities: tuple[float, ...] = Field(default=(0.25, 0.5, 0.75, 0.9), min_length=1, description="Tried on each layer, ascending.")
    examples: int = Field(default=1000, ge=1, description="The first examples of the split, which the loss is measured on; held in memory.")

    def check(self) -> None:
        if any(not 0 < s < 1 for s in self.sparsities) or list(self.sparsities) != sorted(set(self.sparsities)):
            raise ValueError(f"sparsities {self.sparsities} must be between 0 and 1 and ascend")


class PruningConfig(Config):
    """Magnitude pruning with fine-tuning: the smallest weights of each selected layer become zero, or its smallest filters leave."""

    target_sparsity: float = Field(
        default=0.5,
        ge=0,
        lt=1,
        description="Fraction of each pruned kernel's weights that end as zero, or of a layer's filters that go.",
    )
    granularity: Annotated[Granularity, Field(discriminator="kind")] = Field(
        default=Unstructured(), description="In what units weights go: one by one, blocks, m of n, or whole filters."
    )
    schedule: Annotated[PolynomialDecay | ConstantSparsity, Field(discriminator="kind")] = Field(
        default=PolynomialDecay(), description="How sparsity grows over the fine-tuning steps."
    )
    layers: tuple[str, ...] = Field(
        default=("*",),
        min_length=1,
        description="Shell patterns over layer names; each must match a layer. A layer that can't be pruned is left and reported.",
    )
    layer_sparsity: dict[str, _Share] = Field(
        default={},
        description="Patterns over the names of selected layers to their sparsity, in place of target_sparsity; the first match counts.",
    )
    skip_first: bool = Field(default=False, description="Leave the layers that no other prunable layer comes before.")
    skip_last: bool = Field(default=False, description="Leave the layers that no other prunable layer comes after.")
    sensitivity: SensitivityScan | None = Field(
        default=None,
        description="Find each layer's sparsity by a scan first, such that the selected layers together reach target_sparsity.",
    )
    fine_tuning: FineTuningConfig = Field(description="Training between the updates of the masks, or after the filters have gone.")

    def check(self) -> None:
        self._check_granularity()
        sparsities = {"target_sparsity": self.target_sparsity} | {f"layer_sparsity {k!r}": v for k, v in self.layer_sparsity.items()}
        if self.sensitivity is not None:
            if self.layer_sparsity:
                raise ValueError("layer_sparsity and sensitivity both set the layers' sparsity; leave one out")
            if self.target_sparsity > self.sensitivity.sparsities[-1]:
                raise ValueError(
                    f"target_sparsity {self.target_sparsity} must be at most {self.sensitivity.sparsities[-1]}, the last tried"
                )
            sparsities["the least that sensitivity may give a layer,"] = 0.0
        if isinstance(self.schedule, PolynomialDecay):
            for name, sparsity in sparsities.items():
                if self.schedule.initial_sparsity > sparsity:
                    raise ValueError(f"schedule.initial_sparsity {self.schedule.initial_sparsity} must be at most {name} {sparsity}")

    def _check_granularity(self) -> None:
        kind = self.granularity
        if isinstance(kind, (MOfN, Filters)) and self.schedule != PolynomialDecay():
            raise ValueError(f"schedule has no effect with granularity {kind.kind!r}, which prunes all at once; leave it out")
        if isinstance(kind, MOfN):
            share = kind.zeros / kind.group
            if abs(self.target_sparsity - share) > 1e-6:
                raise ValueError(f"target_sparsity {self.target_sparsity} must be zeros / group = {share:g} with granularity 'm_of_n'")
            if self.layer_sparsity or self.sensitivity is not None:
                raise ValueError("layer_sparsity and sensitivity have no effect with granularity 'm_of_n', whose sparsity is fixed")
        if isinstance(kind, XnnpackLatency) and self.target_sparsity <= _XNNPACK_SPARSITY:
            raise ValueError(
                f"target_sparsity {self.target_sparsity} must be more than 2/3 with granularity 'xnnpack_latency': below, XNNPACK runs its "
                "dense kernels"
            )


class LayerSparsity(Config):
    """What pruning did to one layer."""

    layer: str
    type: str = Field(description="Keras class of the layer.")
    weights: int = Field(ge=0, description="Elements of the layer's prunable weights; biases are not pruned.")
    zeros: int = Field(ge=0, description="How many of them are zero.")
    sparsity: float = Field(ge=0, le=1, description="zeros / weights.")
    target: float = Field(default=0.0, ge=0, lt=1, description="The sparsity asked for; 0 where the layer was left.")
    pruned: bool
    reason: str = Field(default="", description="Why the layer was left, where it was.")


class SensitivityPoint(Config):
    """One layer pruned to one sparsity, the others as they were."""

    sparsity: float = Field(ge=0, lt=1)
    loss: float = Field(description="On the sample, less that of the model as it came.")
    metrics: dict[str, float] = Field(description="Each metric that the model was compiled with, less that of the model as it came.")


class LayerSensitivity(Config):
    """What one layer minds, and what was proposed for it."""

    layer: str
    weights: int = Field(ge=0, description="Elements of the layer's prunable weights.")
    points: tuple[SensitivityPoint, ...]
    proposed: float = Field(ge=0, lt=1, description="The layer's sparsity, such that all layers together reach the target.")


class SensitivityReport(Config):
    """The scan's table."""

    examples: int = Field(ge=1, description="Size of the sample.")
    loss: float = Field(description="Of the model as it came, on the sample.")
    metrics: dict[str, float] = Field(description="Of the model as it came, on the sample.")
    target_sparsity: float = Field(ge=0, lt=1, description="Of all layers together, by weights.")
    layers: tuple[LayerSensitivity, ...]


class SparsityReport(Config):
    """`sparsity.json` beside a pruned model whose layers kept their shapes."""

    config: PruningConfig
    layers: tuple[LayerSparsity, ...] = Field(description="Every layer with weights, in the model's order.")
    sparsity: float = Field(ge=0, le=1, description="Zeros over all elements of the pruned layers' weights.")
    sensitivity: SensitivityReport | None = Field(default=None, description="The scan, where the config asks for one.")


class LayerFilters(Config):
    """What filter pruning did to one layer."""

    layer: str
    type: str = Field(description="Keras class of the layer.")
    filters: int = Field(ge=1, description="Filters of a convolution, or units, before.")
    kept: int = Field(ge=1, description="How many of them the layer has now.")
    pruned: bool
    reason: str = Field(default="", description="Why the layer was left, where it was.")


class FilterReport(Config):
    """`filters.json` beside a model from which filters were removed."""

    config: PruningConfig
    layers: tuple[LayerFilters, ...] = Field(description="Every layer that makes channels, in the model's order.")
    parameters_before: int = Field(ge=0)
    parameters_after: int = Field(ge=0)
    macs_before: int | None = Field(ge=0, description="Multiplications of one example; None where a shape is unknown.")
    macs_after: int | None = Field(ge=0, description="As macs_before.")
    sensitivity: SensitivityReport | None = Field(default=None, description="The scan, where the config asks for one.")

"""CalibrationGen: which examples stand for the data, and what is known about the ones chosen."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config


class CalibrationConfig(Config):
    """How CalibrationGen samples. The same data and seed give the same sample, whatever the shards and workers."""

    strategy: Literal["uniform", "stratified"] = Field(
        default="uniform",
        description="uniform: every distinct record is as likely as any other. stratified: each value of stratify_by "
        "gets its share of the sample, and at least one record.",
    )
    num_examples: int = Field(default=200, ge=1, description="Distinct records to keep; a split that holds fewer is an error.")
    seed: int = Field(default=0, ge=0, lt=2**63, description="Another seed gives another sample.")
    stratify_by: str | None = Field(default=None, description="stratified: the feature, often the label, whose values are the strata.")
    split: str = Field(
        default="train", min_length=1, description="The split of the examples to sample from; never the one the gate evaluates on."
    )

    def check(self) -> None:
        if (self.strategy == "stratified") != (self.stratify_by is not None):
            raise ValueError(
                f"strategy {self.strategy!r} with stratify_by {self.stratify_by!r}; 'stratified' needs stratify_by, 'uniform' takes none"
            )


class FeatureStatistics(Config):
    """One numeric feature over the sampled examples, all its values taken together."""

    min: float
    max: float
    mean: float


class CalibrationSummary(Config):
    """`calibration.json` of a CalibrationData artifact."""

    config: CalibrationConfig
    count: int = Field(ge=1, description="Examples in the sample.")
    population: int = Field(ge=1, description="Records in the split, duplicates included.")
    strata: dict[str, int] = Field(default_factory=dict, description="stratified: sampled examples by value of stratify_by.")
    features: dict[str, FeatureStatistics] = Field(description="Numeric dense features by name.")
    digest: str = Field(description="sha256 over the sampled records in their order, each led by its length as 8 bytes, little-endian.")

"""CalibrationGen: which examples stand for the data, and what is known about the ones chosen."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config


class CalibrationConfig(Config):
    """How CalibrationGen samples. The same data and seed give the same sample, whatever the shards and workers."""

    strategy: Literal["uniform", "stratified", "coverage"] = Field(
        default="uniform",
        description="uniform: every distinct record is as likely as any other. stratified: each value of stratify_by "
        "gets its share of the sample, and at least one record. coverage: the records that set each numeric feature's smallest and "
        "largest value, the rest as uniform.",
    )
    num_examples: int = Field(default=200, ge=1, description="Distinct records to keep; a split that holds fewer is an error.")
    seed: int = Field(default=0, ge=0, lt=2**63, description="Another seed gives another sample.")
    stratify_by: str | None = Field(default=None, description="stratified: the feature, often the label, whose values are the strata.")
    split: str = Field(
        default="train", min_length=1, description="The split of the examples to sample from; never the one the gate evaluates on."
    )
    non_finite: Literal["drop", "error"] = Field(
        default="drop",
        description="Records with NaN or infinity in a dense feature: drop leaves them out of the sample, counts them and warns; "
        "error refuses the split.",
    )
    held_out: tuple[str, ...] | None = Field(
        default=None,
        description="Splits whose records the sample should not hold, those that the gate evaluates on. "
        "None: 'eval', where the examples have it; an empty list: none.",
    )
    overlap: Literal["drop", "warn", "error"] = Field(
        default="drop",
        description="Sampled records that also stand in a held-out split: drop puts others in their place, warn keeps them, "
        "error refuses them; drop and warn count and name them.",
    )

    def check(self) -> None:
        if (self.strategy == "stratified") != (self.stratify_by is not None):
            raise ValueError(
                f"strategy {self.strategy!r} with stratify_by {self.stratify_by!r}; 'stratified' needs stratify_by, "
                f"{self.strategy if self.strategy != 'stratified' else 'uniform'!r} takes none"
            )
        if self.held_out is not None and self.split in self.held_out:
            raise ValueError(
                f"held_out {list(self.held_out)} has the split to sample from, {self.split!r}; leave it out, or sample another"
            )


class FeatureStatistics(Config):
    """One numeric feature over the sampled examples, all its values taken together."""

    min: float
    max: float
    mean: float


class DuplicateCounts(Config):
    """Records of the split that equal another."""

    repeated: int = Field(ge=0, description="Sampled examples that the split holds more than once.")
    copies: int = Field(ge=0, description="How many times more than once, in all sampled examples together.")
    distinct_estimate: int = Field(
        ge=0,
        description="Distinct records of the split that could be sampled: exact where distinct_error is 0, else an estimate from how "
        "dense the hashes of the sample lie.",
    )
    distinct_error: float = Field(ge=0, description="Relative standard error of distinct_estimate.")


class NonFiniteCounts(Config):
    """Records that were left out of the sample because a dense feature is NaN or infinite."""

    records: int = Field(ge=0, description="Records left out, duplicates included.")
    features: dict[str, int] = Field(description="Records by the name of such a feature; one record can have several.")


class SharedExample(Config):
    """An example that is also in a held-out split."""

    split: str = Field(description="The held-out split.")
    digest: str = Field(description="sha256 of the tf.Example, its features in the order of their names, those without values left out.")
    values: dict[str, str] = Field(description="The first values of each feature, as text.")


class OverlapCounts(Config):
    """Examples that also stand in a held-out split."""

    splits: tuple[str, ...] = Field(description="The held-out splits.")
    checked: int = Field(
        ge=0, description="Distinct examples looked up in them: with overlap 'drop' more than the sample, so that others can step in."
    )
    found: int = Field(
        ge=0, description="Those of them that stand there too; dropped from the sample with overlap 'drop', else kept in it."
    )
    named: tuple[SharedExample, ...] = Field(description="The first of those found.")


class CalibrationSummary(Config):
    """`calibration.json` of a CalibrationData artifact."""

    config: CalibrationConfig
    count: int = Field(ge=1, description="Examples in the sample.")
    population: int = Field(ge=1, description="Records in the split, duplicates and those left out included.")
    strata: dict[str, int] = Field(default_factory=dict, description="stratified: sampled examples by value of stratify_by.")
    extremes: int = Field(default=0, ge=0, description="coverage: sampled examples that set a feature's smallest or largest value.")
    duplicates: DuplicateCounts | None = Field(default=None, description="None in an artifact made before they were counted.")
    non_finite: NonFiniteCounts | None = Field(default=None, description="None in an artifact made before they were counted.")
    overlap: OverlapCounts | None = Field(default=None, description="None where no held-out split was compared.")
    features: dict[str, FeatureStatistics] = Field(description="Numeric dense features by name.")
    digest: str = Field(description="sha256 over the sampled records in their order, each led by its length as 8 bytes, little-endian.")

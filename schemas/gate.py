"""EdgeValidator: what a candidate must keep to be blessed, and the verdict."""

import json
from typing import Any

from pydantic import Field

from tfx_edge.schemas import metrics
from tfx_edge.schemas.config import Config


class Slice(Config):
    """A part of the data: one slice for each value of the named features, or the one slice where they have given values."""

    feature_keys: tuple[str, ...] = Field(default=(), description="One slice for each combination of these features' values.")
    feature_values: dict[str, str] = Field(default_factory=dict, description="Only the examples with these values, written as text.")

    def check(self) -> None:
        if "" in self.feature_keys or "" in self.feature_values:
            raise ValueError("a feature named ''; name the feature to slice by")
        if not self.feature_keys and not self.feature_values:
            raise ValueError("names no feature; give feature_keys or feature_values (the overall slice is always evaluated)")
        both = sorted(set(self.feature_keys) & set(self.feature_values))
        if both:
            raise ValueError(f"feature {both[0]!r} is in feature_keys and in feature_values; keep one: a value, or every value")

    def __str__(self) -> str:
        return ", ".join([*self.feature_keys, *(f"{k}={v}" for k, v in sorted(self.feature_values.items()))])


class Threshold(Config):
    """Bounds on one metric, held overall and in every slice of the config, or in the slices given here."""

    metric: str = Field(min_length=1, description="Class name of a TFMA or Keras metric, for example SparseCategoricalAccuracy.")
    config: dict[str, Any] = Field(default_factory=dict, description="The metric's own arguments, for example {'top_k': 3}.")
    higher_is_better: bool | None = Field(
        default=None,
        description="None: told by the metric's name, as of accuracies, errors and losses; where it doesn't tell, max_drop needs it.",
    )
    max_drop: float | None = Field(
        default=None,
        ge=0,
        description="Largest loss against the float baseline, in the metric's unit: 0.01 of an accuracy is one percentage point.",
    )
    lower_bound: float | None = Field(default=None, description="Smallest value of the candidate alone.")
    upper_bound: float | None = Field(default=None, description="Largest value of the candidate alone.")
    slices: tuple[Slice, ...] | None = Field(
        default=None, min_length=1, description="None: overall and every slice of the config. Otherwise these slices alone."
    )
    output: str | None = Field(default=None, min_length=1, description="The output to measure; needed where the model has several.")

    def check(self) -> None:
        if self.max_drop is None and self.lower_bound is None and self.upper_bound is None:
            raise ValueError(f"metric {self.metric!r} has no bound; give max_drop, lower_bound or upper_bound")
        if metrics.is_blind(self.metric):
            raise ValueError(
                f"metric {self.metric!r} is the same whatever a model predicts, so a bound on it blesses anything; name another"
            )
        if self.lower_bound is not None and self.upper_bound is not None and self.lower_bound > self.upper_bound:
            raise ValueError(f"lower_bound {self.lower_bound} is above upper_bound {self.upper_bound}; no value is within")
        if self.max_drop is not None:
            if self.higher_is_better is None and metrics.higher_is_better(self.metric) is None:
                raise ValueError(f"metric {self.metric!r} with max_drop {self.max_drop}; give higher_is_better, its name doesn't tell")
            if self.max_drop >= 1 and metrics.is_share(self.metric):
                raise ValueError(
                    f"metric {self.metric!r} with max_drop {self.max_drop}, which forbids nothing; 0.01 is one percentage point"
                )
        try:
            json.dumps(self.config, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"metric {self.metric!r}: config {self.config} isn't plain JSON ({error}); give numbers, texts and lists"
            ) from None

    @property
    def rises(self) -> bool:
        """Whether a higher value is better."""
        return bool(metrics.higher_is_better(self.metric) if self.higher_is_better is None else self.higher_is_better)

    @property
    def name(self) -> str:
        """What reports call the metric: `config["name"]`, or the class name."""
        return str(self.config.get("name", self.metric))


class Budget(Config):
    """What the device can spare. A budget that is named and can't be measured fails the gate."""

    max_bytes: int | None = Field(default=None, ge=1, description="Largest flatbuffer.")
    max_gzip_bytes: int | None = Field(default=None, ge=1, description="Largest flatbuffer after gzip -9.")
    min_gzip_ratio: float | None = Field(
        default=None, gt=0, description="Smallest ratio of the baseline's float flatbuffer to the candidate, both after gzip -9."
    )


class GateConfig(Config):
    """The conditions of a blessing; all of them must hold."""

    label_key: str = Field(min_length=1, description="The transformed feature that holds the label.")
    thresholds: tuple[Threshold, ...] = Field(min_length=1, description="At least one: a gate without thresholds would bless anything.")
    slices: tuple[Slice, ...] = Field(default=(), description="Slices to evaluate, besides the overall one.")
    min_examples: int = Field(
        default=20, ge=1, description="A slice under a threshold that holds fewer examples fails the gate: too few to tell."
    )
    budget: Budget = Field(default=Budget(), description="Sizes that the candidate must not exceed.")
    split: str = Field(default="eval", min_length=1, description="The split of the examples to evaluate on.")
    batch_size: int = Field(default=256, ge=1, description="Examples in one prediction step.")
    time_limit_s: float = Field(
        default=120.0, gt=0, description="Seconds that the candidate may take to load and predict its first batch, in a process of its own."
    )

    def check(self) -> None:
        named: dict[tuple[str, str | None], tuple[str, dict[str, Any]]] = {}
        for threshold in self.thresholds:
            this = threshold.metric, threshold.config
            known = named.setdefault((threshold.name, threshold.output), this)
            if known != this:
                raise ValueError(f"two metrics are named {threshold.name!r}, {known} and {this}; give one another config['name']")


class MetricComparison(Config):
    """One metric in one slice."""

    metric: str
    slice: str = Field(description="Overall, or the slice's features and values.")
    examples: int = Field(ge=0)
    baseline: float | None = Field(description="None where it could not be computed.")
    candidate: float | None = Field(description="None where it could not be computed.")
    difference: float | None = Field(description="Candidate minus baseline.")


class GateReport(Config):
    """`report.json` of an EdgeReport artifact. `blessed` is true only when `reasons` is empty."""

    blessed: bool
    reasons: tuple[str, ...] = Field(description="Why not blessed, each a line that a person can act on.")
    config: GateConfig
    metrics: tuple[MetricComparison, ...]
    size_bytes: int | None = Field(description="The candidate flatbuffer.")
    gzip_bytes: int | None = Field(description="The candidate flatbuffer after gzip -9.")
    baseline_size_bytes: int | None = Field(
        default=None, description="The baseline as a float flatbuffer; None unless a budget compares with it."
    )
    baseline_gzip_bytes: int | None = Field(default=None, description="The same after gzip -9.")
    runtime: str = Field(description="The LiteRT that ran the candidate.")

    def check(self) -> None:
        if self.blessed == bool(self.reasons):
            raise ValueError(f"blessed {self.blessed} with {len(self.reasons)} reasons against it")

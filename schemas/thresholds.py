"""What the gate measures: metrics, on which outputs, classes and slices, and the bounds that they must keep."""

import json
from typing import Any, Literal

from pydantic import Field

from tfx_edge.schemas import metrics
from tfx_edge.schemas.config import Config


class Slice(Config):
    """A part of the data: one slice for each value of the named features, or the one slice where they have given values."""

    feature_keys: tuple[str, ...] = Field(default=(), description="One slice for each combination of these features' values.")
    feature_values: dict[str, str] = Field(default_factory=dict, description="Only the examples with these values, written as text.")

    def check(self) -> None:
        if len(set(self.feature_keys)) < len(self.feature_keys):
            raise ValueError(f"feature_keys {self.feature_keys} name a feature twice; name it once")
        if "" in self.feature_keys or "" in self.feature_values:
            raise ValueError("a feature named ''; name the feature to slice by")
        if not self.feature_keys and not self.feature_values:
            raise ValueError("names no feature; give feature_keys or feature_values (the overall slice is always evaluated)")
        both = sorted(set(self.feature_keys) & set(self.feature_values))
        if both:
            raise ValueError(f"feature {both[0]!r} is in feature_keys and in feature_values; keep one: a value, or every value")

    def __str__(self) -> str:
        return ", ".join([*self.feature_keys, *(f"{k}={v}" for k, v in sorted(self.feature_values.items()))])


class Metric(Config):
    """A metric or a plot of TFMA or Keras, and what of the model's predictions it looks at."""

    metric: str = Field(min_length=1, description="Class name of a TFMA or Keras metric, for example SparseCategoricalAccuracy.")
    config: dict[str, Any] = Field(default_factory=dict, description="The metric's own arguments, for example {'k': 3}.")
    output: str | None = Field(default=None, min_length=1, description="The output to measure; needed where the model has several.")
    class_id: int | None = Field(default=None, ge=0, description="This class against the rest, or this label of a multi-label model.")
    top_k: int | None = Field(default=None, ge=1, description="The k highest predictions alone, as in precision at k or NDCG at k.")
    average: Literal["micro", "macro", "weighted_macro"] | None = Field(
        default=None,
        description="Over classes: micro pools their counts, macro means their values, weighted_macro weighs those by labels.",
    )
    class_ids: tuple[int, ...] = Field(default=(), description="The classes that a macro average is over; needed there.")
    query_key: str | None = Field(default=None, min_length=1, description="Feature that groups the examples of one query: ranking metrics.")

    def check(self) -> None:
        if self.class_id is not None and (self.top_k is not None or self.average is not None):
            other = "top_k" if self.top_k is not None else "average"
            raise ValueError(f"metric {self.metric!r} has class_id {self.class_id} and {other}; give one of them")
        macro = self.average in ("macro", "weighted_macro")
        if macro and not self.class_ids:
            raise ValueError(f"metric {self.metric!r} with average {self.average!r} and no class_ids; name the classes to average over")
        if self.class_ids and not macro:
            raise ValueError(f"metric {self.metric!r} with class_ids {self.class_ids} and no macro average; give average='macro'")
        try:
            json.dumps(self.config, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"metric {self.metric!r}: config {self.config} isn't plain JSON ({error}); give numbers, texts and lists"
            ) from None

    @property
    def name(self) -> str:
        """What reports call the metric: `config["name"]`, or the class name."""
        return str(self.config.get("name", self.metric))

    @property
    def title(self) -> str:
        """The name with what it looks at.

        >>> from tfx_edge.schemas import Metric
        >>> Metric(metric="Precision", output="digit", average="macro", class_ids=(0, 1)).title
        "macro Precision of classes 0, 1 of output 'digit'"
        """
        parts = [f"{self.average.replace('_', ' ')} {self.name}" if self.average else self.name]
        parts += [f"at {self.top_k}"] if self.top_k is not None else []
        parts += [f"of class {self.class_id}"] if self.class_id is not None else []
        parts += [f"of classes {', '.join(map(str, self.class_ids))}"] if self.class_ids else []
        parts += [f"of output {self.output!r}"] if self.output is not None else []
        return " ".join([*parts, *([f"by {self.query_key}"] if self.query_key is not None else [])])

    @property
    def selection(self) -> tuple[Any, ...]:
        """What the metric looks at, as a key: two metrics of one name with one selection would be one."""
        return self.output, self.class_id, self.top_k, self.average, self.class_ids, self.query_key


class Threshold(Metric):
    """Bounds on one metric, held overall and in every slice of the config, or in the slices given here."""

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

    def check(self) -> None:
        super().check()
        if self.max_drop is None and self.lower_bound is None and self.upper_bound is None:
            raise ValueError(f"metric {self.metric!r} has no bound; give max_drop, lower_bound or upper_bound")
        if metrics.is_blind(self.metric):
            raise ValueError(
                f"metric {self.metric!r} is the same whatever a model predicts, so a bound on it blesses anything; name another"
            )
        if metrics.is_comparison(self.metric) and self.max_drop is not None:
            raise ValueError(
                f"metric {self.metric!r} compares candidate and baseline already, so max_drop {self.max_drop} has no meaning; "
                "give it an upper_bound or a lower_bound"
            )
        named = metrics.higher_is_better(self.metric)
        if self.higher_is_better is not None and named is not None and self.higher_is_better != named:
            better = "higher" if named else "lower"
            raise ValueError(f"metric {self.metric!r} with higher_is_better {self.higher_is_better}; {better} is better, leave it out")
        if self.lower_bound is not None and self.upper_bound is not None and self.lower_bound > self.upper_bound:
            raise ValueError(f"lower_bound {self.lower_bound} is above upper_bound {self.upper_bound}; no value is within")
        if self.max_drop is not None:
            if self.higher_is_better is None and metrics.higher_is_better(self.metric) is None:
                raise ValueError(f"metric {self.metric!r} with max_drop {self.max_drop}; give higher_is_better, its name doesn't tell")
            if self.max_drop >= 1 and metrics.is_share(self.metric):
                raise ValueError(
                    f"metric {self.metric!r} with max_drop {self.max_drop}, which forbids nothing; 0.01 is one percentage point"
                )

    @property
    def rises(self) -> bool:
        """Whether a higher value is better."""
        return bool(metrics.higher_is_better(self.metric) if self.higher_is_better is None else self.higher_is_better)

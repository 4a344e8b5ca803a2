"""EdgeValidator: what a candidate must keep to be blessed."""

import re
from typing import Any, Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.target import Target
from tfx_edge.schemas.thresholds import Metric, Slice, Threshold


class Budget(Config):
    """What the device can spare. A budget that is named and can't be measured fails the gate."""

    max_bytes: int | None = Field(default=None, ge=1, description="Largest flatbuffer.")
    max_gzip_bytes: int | None = Field(default=None, ge=1, description="Largest flatbuffer after gzip -9.")
    min_gzip_ratio: float | None = Field(
        default=None, gt=0, description="Smallest ratio of the baseline's float flatbuffer to the candidate, both after gzip -9."
    )
    max_latency_ratio: float | None = Field(
        default=None,
        gt=0,
        description="Largest ratio of the candidate's time for one example to the float flatbuffer's, measured in turn in one process.",
    )
    max_peak_memory_bytes: int | None = Field(
        default=None, ge=1, description="Most memory that loading the candidate and predicting one example may add to a process."
    )
    operators: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="The only operators that the device's runtime has, by LiteRT's names: CONV_2D, SOFTMAX."
    )

    def check(self) -> None:
        wrong = [name for name in self.operators or () if not re.fullmatch(r"[A-Z][A-Z0-9_]*|custom:.+", name)]
        if wrong:
            raise ValueError(f"operators: {wrong[0]!r} is none of LiteRT's names, which are written as CONV_2D; write it so")


class DriftLimit(Config):
    """How far the candidate's predictions may lie from the baseline's, whatever the labels say; over all examples."""

    output: str | None = Field(default=None, min_length=1, description="The output meant; None: every output.")
    max_flip_rate: float | None = Field(default=None, ge=0, lt=1, description="Largest share of examples whose predicted class changes.")
    max_mean_abs_error: float | None = Field(default=None, ge=0, description="Largest mean absolute difference of an output's values.")
    max_worst_abs_error: float | None = Field(default=None, ge=0, description="Largest absolute difference of any output value.")
    min_sqnr_db: float | None = Field(default=None, description="Smallest ratio of signal to quantization noise, in decibels.")

    def check(self) -> None:
        if all(getattr(self, name) is None for name in self.bounds()):
            what = repr(self.output) if self.output else "every output"
            raise ValueError(f"drift of {what} has no bound; give one of {', '.join(self.bounds())}")

    @staticmethod
    def bounds() -> tuple[str, ...]:
        """Names of the fields that bound something."""
        return "max_flip_rate", "max_mean_abs_error", "max_worst_abs_error", "min_sqnr_db"


class GateConfig(Config):
    """The conditions of a blessing; all of them must hold."""

    label_key: str | None = Field(default=None, min_length=1, description="The transformed feature that holds the label.")
    label_keys: dict[str, str] = Field(
        default_factory=dict, description="The label's feature by output, where a model has several; in place of label_key."
    )
    example_weight_key: str | None = Field(default=None, min_length=1, description="The feature that weighs examples, where there is one.")
    thresholds: tuple[Threshold, ...] = Field(min_length=1, description="At least one: a gate without thresholds would bless anything.")
    metrics: tuple[Metric, ...] = Field(default=(), description="Metrics and plots to compute besides; nothing depends on their values.")
    slices: tuple[Slice, ...] = Field(default=(), description="Slices to evaluate, besides the overall one.")
    min_examples: int = Field(
        default=20, ge=1, description="A slice under a threshold that holds fewer examples fails the gate: too few to tell."
    )
    confidence: float | None = Field(
        default=None,
        ge=0.5,
        lt=1,
        description="Bless only if max_drop holds with this confidence, 0.95 say: at the bad end of the paired difference's interval.",
    )
    correction: Literal["none", "holm"] = Field(
        default="none", description="holm: confidence holds for all max_drops and slices together (Holm's step-down), not for each."
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the resamples that tell how certain a metric is that is no mean, as AUC.")
    drift: tuple[DriftLimit, ...] = Field(default=(), description="Limits on how far predictions may move.")
    layer_examples: int = Field(
        default=32, ge=0, le=64, description="Examples for the report's table of errors by operator; 0 leaves the table out."
    )
    worst_examples: int = Field(
        default=16,
        ge=0,
        le=16,
        description="Examples of each output on which the models differ most, kept in decisions.json with their features; 0 keeps none.",
    )
    budget: Budget = Field(default=Budget(), description="What the candidate must not exceed.")
    targets: tuple[Target, ...] = Field(default=(), description="Devices that must be able to run the candidate.")
    signature: str | None = Field(
        default=None, min_length=1, description="Signature of both models to evaluate; None: serving_default, or the only one."
    )
    preprocessing_function_names: tuple[str, ...] = Field(
        default=(),
        description="Functions in the baseline's SavedModel, as tft_layer, applied to the examples for both models, as in TFMA.",
    )
    split: str = Field(default="eval", min_length=1, description="The split of the examples to evaluate on.")
    batch_size: int = Field(default=256, ge=1, le=1_000_000, description="Examples in one prediction step.")
    num_threads: int = Field(default=1, ge=1, le=256, description="Threads that LiteRT may use in one prediction.")
    time_limit_s: float = Field(
        default=120.0,
        gt=0,
        description="Seconds for each child process: the candidate's first load and batch, a measurement, a target's tool, "
        "the table of errors.",
    )

    def check(self) -> None:
        if (self.label_key is None) == (not self.label_keys):
            raise ValueError(
                f"label_key {self.label_key!r} and label_keys {self.label_keys}; give label_key, or label_keys with one for each output"
            )
        if self.confidence is not None and all(t.max_drop is None for t in self.thresholds):
            raise ValueError(f"confidence {self.confidence} and no max_drop for it to hold; give one, or drop the confidence")
        if self.correction != "none" and self.confidence is None:
            raise ValueError(f"correction {self.correction!r} and no confidence to correct; give confidence, 0.95 say")
        self._check_outputs()
        self._check_names()

    def _check_outputs(self) -> None:
        if not self.label_keys:
            return
        for metric in (*self.thresholds, *self.metrics):
            if metric.output not in self.label_keys:
                where = "no output" if metric.output is None else f"output {metric.output!r}"
                raise ValueError(
                    f"metric {metric.metric!r} names {where}; with label_keys each metric names one of {', '.join(sorted(self.label_keys))}"
                )

    def _check_names(self) -> None:
        named: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {}
        for metric in (*self.thresholds, *self.metrics):
            this = metric.metric, metric.config
            known = named.setdefault((metric.name, *metric.selection), this)
            if known != this:
                raise ValueError(f"two metrics are named {metric.name!r}, {known} and {this}; give one another config['name']")

    @property
    def label_features(self) -> tuple[str, ...]:
        """Features that hold labels, each once."""
        return tuple(dict.fromkeys(self.label_keys.values() if self.label_key is None else (self.label_key,)))

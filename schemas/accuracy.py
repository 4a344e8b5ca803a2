"""Accuracy-aware quantization: what the search may lose, what it may try, and what came of each trial."""

from typing import Literal, get_args

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.qat import QatConfig
from tfx_edge.schemas.ranges import RangeMethod
from tfx_edge.schemas.schemes import CALIBRATED, Scheme
from tfx_edge.schemas.thresholds import Threshold

Remedy = Literal[
    "channel_scales",
    "percentile",
    "moving_average",
    "mse",
    "entropy",
    "cross_layer_equalization",
    "ada_round",
    "bias_correction",
    "mixed",
    "int16x8",
    "dynamic_range",
]
Step = Literal["as_asked", "sensitivity", Remedy, "qat"]
Fallback = Literal["float32", "float16", "int8_weights", "int16x8"]

# A metric of Keras is float32 arithmetic: a drop of exactly max_drop may read as two units of its last place more, as in the gate.
_ROUNDING = 2.0**-22


class AccuracyTarget(Config):
    """The smallest model that loses no more than max_drop: what the search measures, and what it may try.

    >>> from tfx_edge.schemas import AccuracyTarget, Threshold
    >>> accuracy = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01)
    >>> target = AccuracyTarget(threshold=accuracy, label_key="digit", split="validation")
    >>> target.keeps(0.99, 0.98), target.keeps(0.99, 0.97)
    (True, False)
    """

    threshold: Threshold = Field(
        description="A metric of Keras, and its max_drop: how much worse than the float flatbuffer the quantized one may be."
    )
    label_key: str = Field(min_length=1, description="The transformed feature that holds the label.")
    split: str = Field(
        min_length=1,
        description="The split that candidates are measured on; best one of its own. On what a model was trained on it is surer of "
        "itself, so less seems lost; and on the gate's, the gate judges a model that was chosen by the very same examples.",
    )
    examples: int | None = Field(default=1000, ge=1, description="How many of its first examples; None: all. They are held in memory.")
    escalation: tuple[Remedy, ...] = Field(
        default=(
            "channel_scales",
            "percentile",
            "moving_average",
            "mse",
            "entropy",
            "cross_layer_equalization",
            "ada_round",
            "bias_correction",
            "mixed",
            "int16x8",
            "dynamic_range",
        ),
        description="What is tried where the scheme as asked loses too much, in this order, until something doesn't. channel_scales: "
        "one scale a channel of the weights. percentile, moving_average, mse, entropy: ranges by that method. cross_layer_equalization, "
        "ada_round, bias_correction: the corrections of these names. mixed: the smallest set of operators at the fallback, on top of "
        "what of the above has helped. int16x8: the whole model as asked, but with 16-bit activations. dynamic_range: int8 weights, with "
        "activations quantized while it runs, for models that take no ranges (loops).",
    )
    fallback: Fallback = Field(default="float32", description="The scheme of the operators that `mixed` leaves at higher precision.")
    max_candidates: int = Field(default=300, ge=1, description="Candidates that are made and measured at most, refused ones included.")
    qat: QatConfig | None = Field(
        default=None, description="Quantization-aware training, where nothing else meets the target; None: not allowed."
    )

    def check(self) -> None:
        if self.threshold.max_drop is None:
            raise ValueError("threshold without max_drop; say how much worse than the float model the quantized one may be")
        known = {"metric", "config", "output", "max_drop", "higher_is_better"}
        foreign = [name for name in self.threshold.model_dump(exclude_defaults=True) if name not in known]
        if foreign:
            raise ValueError(f"threshold.{foreign[0]}: the search measures one metric over all examples; leave it to the gate")
        twice = [name for name in self.escalation if self.escalation.count(name) > 1]
        if twice:
            raise ValueError(f"escalation names {twice[0]!r} twice; name it once")

    @property
    def max_drop(self) -> float:
        """The threshold's, in the metric's unit."""
        return float(self.threshold.max_drop or 0.0)

    @property
    def uses_calibration(self) -> bool:
        """Whether the escalation may come to something that learns from calibration data."""
        learns = {"cross_layer_equalization", "ada_round", "bias_correction", "int16x8"}
        return not learns.isdisjoint(self.escalation) or ("mixed" in self.escalation and self.fallback in CALIBRATED)

    @property
    def range_methods(self) -> frozenset[RangeMethod]:
        """What the escalation may take ranges by."""
        methods: tuple[RangeMethod, ...] = get_args(RangeMethod)
        return frozenset(method for method in methods if method in self.escalation)

    def drop(self, float_metric: float, metric: float) -> float:
        """How much worse than the float model a metric is; below 0 where it is better."""
        return float_metric - metric if self.threshold.rises else metric - float_metric

    def keeps(self, float_metric: float, metric: float) -> bool:
        """Whether the loss is within max_drop, but for the rounding of the metric itself."""
        return self.drop(float_metric, metric) <= self.max_drop + _ROUNDING * max(abs(float_metric), abs(metric))


class SearchTrial(Config):
    """One candidate of the search, and what came of it."""

    step: Step = Field(
        description="as_asked: the config itself. sensitivity: one operator quantized, all others in float. Else what of the escalation "
        "was tried; qat: the training behind it."
    )
    scheme: Scheme
    remedies: tuple[Remedy, ...] = Field(default=(), description="What of the escalation was in force.")
    operators: tuple[str, ...] = Field(
        default=(),
        description="Operators by their first output: left at the fallback, or in step sensitivity the one that is quantized.",
    )
    metric: float | None = Field(default=None, description="The threshold's.")
    drop: float | None = Field(default=None, description="How much worse than the float model, below 0 better.")
    sqnr_db: float | None = Field(
        default=None,
        description="Of the outputs: 10·log10 of the sum of float² over the sum of error²; None where nothing differs, or failed.",
    )
    size_bytes: int | None = Field(default=None, ge=0, description="Of the flatbuffer.")
    gzip_bytes: int | None = Field(default=None, ge=0, description="Of the flatbuffer after gzip -9, where it may win.")
    feasible: bool = Field(default=False, description="Made, and within max_drop.")
    error: str = Field(default="", description="Why nothing came of it, where nothing did.")

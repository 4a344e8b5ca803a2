"""What the gate's paired statistics, drift and layer errors are written as."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config

Method = Literal["paired_t", "t", "agresti_min", "agresti_coull", "poisson_bootstrap"]
FlipRule = Literal["argmax", "above 0.5", "above 0", "values"]


class Interval(Config):
    """Where the true value lies, with a confidence; both ends None where the examples are too few to tell."""

    low: float | None
    high: float | None
    confidence: float = Field(gt=0, lt=1, description="Share of evaluations whose interval holds the true value.")
    method: Method = Field(description="How the interval was made.")

    def check(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError(f"low {self.low} and high {self.high}; give both or neither")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}; an interval goes up")


class ValueMoments(Config):
    """Sums over examples of a value x with example weights w, about the mean."""

    examples: int = Field(ge=0, description="Those with a weight other than 0.")
    weight: float = Field(ge=0, description="Sum of w.")
    squared_weight: float = Field(ge=0, description="Sum of w².")
    mean: float = Field(description="Sum of w·x over weight.")
    first: float = Field(description="Sum of w²·(x - mean); 0 where all weights are equal.")
    second: float = Field(description="Sum of w²·(x - mean)².")
    zero_one: bool = Field(description="Every x was 0 or 1.")


class PairedMean(Config):
    """A metric that is a mean over examples, of both models on the same examples."""

    metric: str = Field(description="Its name and what it looks at, as reports call it.")
    output: str | None = Field(description="None where the model has one.")
    baseline: ValueMoments
    candidate: ValueMoments
    difference: ValueMoments = Field(description="Of candidate minus baseline, example by example.")
    higher: int = Field(ge=0, description="Examples on which the candidate's value is higher.")
    lower: int = Field(ge=0, description="Examples on which the candidate's value is lower.")


class OutputDrift(Config):
    """How far the candidate's predictions of one output are from the baseline's, whatever the labels say."""

    output: str | None = Field(description="None where the model has one.")
    examples: int = Field(ge=0)
    flip_rule: FlipRule | None = Field(
        description="What makes a prediction a decision. argmax: the labels are classes. above 0.5: the labels are 0 or 1, and so are "
        "the ends of the predictions. above 0: the labels are 0 or 1, the predictions logits. values: predictions that aren't real "
        "numbers. None: a regression, which decides nothing."
    )
    flips: int | None = Field(description="Examples on which the two decide otherwise; None without a rule.")
    mean_abs_error: float | None = Field(description="Over all values of the output; None where they aren't real numbers.")
    worst_abs_error: float | None = Field(description="The largest of all values.")
    sqnr_db: float | None = Field(
        description="Signal to quantization noise: 10·log10 of the sum of baseline² over the sum of error²; None where one of them is 0."
    )

    @property
    def flip_rate(self) -> float | None:
        """Share of the examples on which the two models decide otherwise; None without a rule or examples."""
        return None if self.flips is None or not self.examples else self.flips / self.examples


class SliceStatistics(Config):
    """One slice that occurred in the data."""

    key: tuple[tuple[str, str | int | float], ...] = Field(description="Features and values, as TFMA names the slice; empty: overall.")
    examples: int = Field(ge=0)
    weighted: int = Field(ge=0, description="Those with a weight other than 0; all of them where examples have no weights.")
    means: tuple[PairedMean | None, ...] = Field(
        description="One for each threshold of the gate, in its order; None where the metric is no mean over examples, or no number."
    )
    drift: tuple[OutputDrift, ...] = Field(description="One for each output, by name.")


class PairedStatistics(Config):
    """`statistics.json` of an evaluation: what baseline and candidate predicted on the same examples, by slice."""

    slices: tuple[SliceStatistics, ...]


class LayerError(Config):
    """The output of one operator in the candidate, against the same tensor of the float flatbuffer."""

    op: str = Field(description="LiteRT's name of the float flatbuffer's operator, for example CONV_2D.")
    tensor: str = Field(description="Name of the output in both flatbuffers.")
    sqnr_db: float | None = Field(description="10·log10 of the sum of float² over the sum of error²; None where one of them is 0.")
    mean_abs_error: float = Field(ge=0)
    worst_abs_error: float = Field(ge=0)
    loss_db: float = Field(
        ge=0,
        description="What the operator itself costs: how much lower the SQNR is than that of its noisiest input, counted from about "
        "40 dB down, which rounding to int8 costs anyway.",
    )


class LayerErrors(Config):
    """Where a candidate loses accuracy, operator by operator in the order of execution."""

    layers: tuple[LayerError, ...]
    examples: int = Field(ge=0)
    skipped: int = Field(ge=0, description="Outputs of operators that only one of the two flatbuffers has, by name or by shape.")

    @property
    def worst(self) -> tuple[LayerError, ...]:
        """The layers by what they cost, most first."""
        return tuple(sorted(self.layers, key=lambda layer: -layer.loss_db))

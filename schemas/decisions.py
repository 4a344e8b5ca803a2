"""EdgeValidator: which decisions of the two models differ, and the examples on which they differ most."""

import base64
import binascii

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.statistics import FlipRule

MOST_CLASSES = 50
"""A confusion matrix of more classes can't be read, and isn't made."""


class ConfusionMatrix(Config):
    """How often each model decided for each class: a row for each label, in it a count for each decision."""

    baseline: tuple[tuple[int, ...], ...]
    candidate: tuple[tuple[int, ...], ...]

    def check(self) -> None:
        classes = len(self.baseline)
        for name, rows in (("baseline", self.baseline), ("candidate", self.candidate)):
            if len(rows) != classes or any(len(row) != classes for row in rows):
                raise ValueError(
                    f"{name} isn't a row of {classes} counts for each of {classes} classes; the two are of one size, and square"
                )

    @property
    def difference(self) -> tuple[tuple[int, ...], ...]:
        """Candidate minus baseline."""
        return tuple(tuple(c - b for b, c in zip(*rows, strict=True)) for rows in zip(self.baseline, self.candidate, strict=True))


class ExampleImage(Config):
    """A picture of a feature whose shape is that of an image."""

    height: int = Field(ge=1, le=64)
    width: int = Field(ge=1, le=64)
    channels: int = Field(ge=1, le=4, description="1: grey; 3: red, green, blue; 4: and opacity.")
    step: int = Field(ge=1, description="It has every step-th pixel of every step-th row.")
    low: float = Field(description="The value that is drawn black.")
    high: float = Field(description="The value that is drawn white.")
    pixels: str = Field(description="base64 of a byte for each value, row by row.")

    def check(self) -> None:
        try:
            found = len(base64.b64decode(self.pixels, validate=True))
        except binascii.Error as error:
            raise ValueError(f"pixels are no base64 ({error})") from None
        if found != self.height * self.width * self.channels:
            raise ValueError(f"{found} bytes of pixels for {self.height} rows of {self.width} with {self.channels} channels")


class ExampleFeature(Config):
    """What one example has in one feature."""

    name: str
    dtype: str = Field(description="NumPy's name of the element type.")
    shape: tuple[int, ...] = Field(description="Of this example alone.")
    values: tuple[float | str, ...] = Field(description="The first ones.")
    image: ExampleImage | None = Field(default=None, description="None where the shape is no image's.")


class OutputValue(Config):
    """What both models predicted at one position of an output."""

    position: int = Field(ge=0, description="In the flattened output of one example.")
    baseline: float
    candidate: float


class Disagreement(Config):
    """One example, and how far apart the two models are on it."""

    example: str = Field(description="Digest of its features: the same example has the same in every run.")
    label: float | None = Field(description="A class where labels are one-hot; None where there is no label of one number.")
    error: float = Field(ge=0, description="Largest difference of a value of the output.")
    flipped: bool | None = Field(description="The two decide otherwise; None where the output decides nothing.")
    baseline_decision: int | None = Field(default=None, description="The class; None where the output decides for none.")
    candidate_decision: int | None = Field(default=None, description="Likewise.")
    predictions: tuple[OutputValue, ...] = Field(description="Where they differ most, and where either is highest.")
    features: tuple[ExampleFeature, ...] = Field(description="But for labels; images first.")


class OutputDecisions(Config):
    """One output of the models."""

    output: str | None = Field(description="None where the model has one.")
    rule: FlipRule | None = Field(description="What makes a prediction a decision, as in OutputDrift; None: nothing.")
    confusion: ConfusionMatrix | None
    no_confusion: str = Field(default="", description="Why there is no confusion matrix, where there is none.")
    worst: tuple[Disagreement, ...] = Field(description="Worst first; without examples on which nothing differs.")

    def check(self) -> None:
        if (self.confusion is None) != bool(self.no_confusion):
            raise ValueError(f"no_confusion {self.no_confusion!r} beside a confusion matrix, or neither; give one of them")


class PairedDecisions(Config):
    """`decisions.json` of an evaluation."""

    outputs: tuple[OutputDecisions, ...]

"""What a flatbuffer says of itself: TFLite Metadata, which apps and Android's tools read out of the file."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config

FileKind = Literal["unknown", "descriptions", "axis_labels", "value_labels", "score_calibration", "vocabulary"]
ContentKind = Literal["feature", "image", "bounding_box"]
ColorSpace = Literal["unknown", "rgb", "grayscale"]


class AssociatedFile(Config):
    """A text file inside the flatbuffer's file."""

    name: str = Field(min_length=1, description="Its name in the archive behind the flatbuffer, without folders.")
    kind: FileKind = Field(default="unknown", description="axis_labels: a line for each position of the last dimension.")
    description: str = ""
    text: str | None = Field(default=None, description="What is in it; None where it isn't in the archive or isn't plain UTF-8 text.")


class Normalization(Config):
    """What is to be done with a value before the model gets it: (value - mean) / std, one for all channels or one for each."""

    mean: tuple[float, ...] = Field(min_length=1)
    std: tuple[float, ...] = Field(min_length=1)


class TensorMetadata(Config):
    """One input or output."""

    name: str = Field(description="The signature's.")
    description: str = ""
    content: ContentKind | None = Field(default=None, description="What it stands for.")
    color_space: ColorSpace = Field(default="unknown", description="Of an image.")
    normalization: Normalization | None = Field(default=None, description="Outside of the model; None for none.")
    min: tuple[float, ...] = Field(default=(), description="Smallest value seen in calibration, or one a channel; empty if unknown.")
    max: tuple[float, ...] = Field(default=(), description="The largest.")
    files: tuple[AssociatedFile, ...] = ()


class ModelMetadata(Config):
    """TFLite Metadata, as far as this package writes it. Inputs and outputs stand in the order of the flatbuffer's graph."""

    name: str = ""
    description: str = ""
    version: str = Field(default="", description="The model's, as its makers count.")
    author: str = ""
    license: str = ""
    inputs: tuple[TensorMetadata, ...] = ()
    outputs: tuple[TensorMetadata, ...] = ()
    files: tuple[AssociatedFile, ...] = Field(default=(), description="Files that belong to no tensor.")

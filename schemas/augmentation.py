"""Random changes to the features while training, by feature name."""

from typing import Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config

_KIND_REQUIRED = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the kinds apart


class ImageAugmentation(Config):
    """For a feature of shape `[height, width, channels]` or `[height, width]`; what leaves the frame leaves a gap of 0."""

    model_config = _KIND_REQUIRED

    kind: Literal["image"] = "image"
    feature: str = Field(min_length=1, description="Name of the feature.")
    flip: Literal["horizontal", "vertical", "horizontal_and_vertical"] | None = Field(
        default=None, description="Mirrored half of the time."
    )
    rotate: float = Field(default=0.0, ge=0, le=180, description="The largest rotation either way, in degrees.")
    crop: float = Field(default=0.0, ge=0, lt=1, description="Padded and cropped: the largest shift of the frame, a share of its size.")
    zoom: float = Field(default=0.0, ge=0, lt=1, description="The largest zoom in or out, a share of the size.")
    brightness: float = Field(default=0.0, ge=0, le=1, description="The largest value added or taken, a share of value_range.")
    value_range: tuple[float, float] = Field(default=(0.0, 1.0), description="Darkest and lightest value; brightness stays within.")

    def check(self) -> None:
        if not (self.flip or self.rotate or self.crop or self.zoom or self.brightness):
            raise ValueError(
                f"the augmentation of {self.feature!r} sets nothing; give flip, rotate, crop, zoom or brightness, or leave it out"
            )
        if self.value_range[0] >= self.value_range[1]:
            raise ValueError(f"value_range {self.value_range} must be (darkest, lightest)")


class TextAugmentation(Config):
    """For a feature of integer tokens, shape `[length]`."""

    model_config = _KIND_REQUIRED

    kind: Literal["text"] = "text"
    feature: str = Field(min_length=1, description="Name of the feature.")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="Chance of each token to become `replacement`.")
    swap: float = Field(default=0.0, ge=0, le=1, description="Chance of each second token to change places with the next.")
    replacement: int = Field(default=0, description="What a dropped token becomes.")
    padding: int = Field(default=0, description="Tokens that stay as and where they are.")

    def check(self) -> None:
        if not (self.dropout or self.swap):
            raise ValueError(f"the augmentation of {self.feature!r} sets nothing; give dropout or swap, or leave it out")


class SignalAugmentation(Config):
    """For a feature of floats over time, shape `[steps]` or `[steps, channels]`."""

    model_config = _KIND_REQUIRED

    kind: Literal["signal"] = "signal"
    feature: str = Field(min_length=1, description="Name of the feature.")
    noise: float = Field(default=0.0, ge=0, description="Standard deviation of the normal noise that is added, in the feature's unit.")
    shift: int = Field(default=0, ge=0, description="The largest shift either way, in steps; the gap repeats the value at the edge.")

    def check(self) -> None:
        if not (self.noise or self.shift):
            raise ValueError(f"the augmentation of {self.feature!r} sets nothing; give noise or shift, or leave it out")


Augmentation = ImageAugmentation | TextAugmentation | SignalAugmentation

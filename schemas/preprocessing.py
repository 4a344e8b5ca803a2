"""What Transform does before the model, as far as its graph tells: for those who feed a device."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.model_metadata import Normalization


class RawFeature(Config):
    """A feature of the raw examples."""

    name: str
    dtype: Literal["float32", "int64", "string"]
    shape: tuple[int, ...] | None = Field(description="Of one example; None where examples have different numbers of values, or none.")
    min: float | None = Field(default=None, description="Smallest value of the schema's domain; None where it has none.")
    max: float | None = Field(default=None, description="The largest.")
    values: int | None = Field(default=None, description="How many different texts the schema's domain has.")


class TransformedFeature(Config):
    """An input of the model that was trained."""

    name: str
    sources: tuple[str, ...] = Field(description="The raw features that it is computed from.")
    normalization: Normalization | None = Field(
        default=None, description="What Transform does to each value, 0 and 1 where it leaves them; None where it does anything else."
    )
    min: float | None = Field(default=None, description="Smallest value of the domain that Transform gave it, as for an index; or None.")
    max: float | None = Field(default=None, description="The largest.")


class Preprocessing(Config):
    """The part of Transform's graph that the model needs."""

    features: tuple[TransformedFeature, ...]
    raw_features: tuple[RawFeature, ...]
    vocabularies: dict[str, int] = Field(description="How many entries each vocabulary of the graph has.")

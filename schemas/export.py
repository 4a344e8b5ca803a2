"""TFLiteExporter: how the flatbuffer is made, and the manifest that goes with it."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.schemes import Scheme
from tfx_edge.schemas.tensors import Signature


class ExportConfig(Config):
    """Nothing here changes a weight."""

    description: str = Field(default="", max_length=1000, description="One sentence about the model, for the manifest.")


class Manifest(Config):
    """`edge/manifest.json` of an edge model: what a device or a person must know before loading it."""

    description: str
    digest: str = Field(description="sha256 of the flatbuffer.")
    float_model_digest: str = Field(description="sha256 of the float flatbuffer it was made from.")
    plan_digest: str | None = Field(
        description="sha256 of plan.json, ranges.json and constants.npz, one after the other; None without a plan."
    )
    scheme: Scheme
    features: Literal["transformed"] = Field(default="transformed", description="What the inputs are: Transform's outputs.")
    signature: Signature
    size_bytes: int = Field(ge=1, description="The flatbuffer as it is.")
    gzip_bytes: int = Field(ge=1, description="The flatbuffer after gzip -9, which is about what a device downloads.")
    float_size_bytes: int = Field(ge=1, description="The float flatbuffer as it is.")
    float_gzip_bytes: int = Field(ge=1, description="The float flatbuffer after gzip -9.")
    minimum_runtime: str | None = Field(
        description="Oldest TensorFlow Lite runtime version that has every operator; None if the converter wrote none."
    )
    operators: dict[str, int] = Field(description="How often each LiteRT operator occurs.")

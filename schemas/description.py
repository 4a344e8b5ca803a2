"""What `tfx-edge inspect` says of a flatbuffer."""

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.model_metadata import ModelMetadata
from tfx_edge.schemas.tensors import Signature


class TensorDescription(Config):
    """One tensor of a graph."""

    name: str
    dtype: str = Field(description="LiteRT's name, for example INT8.")
    shape: tuple[int, ...] = Field(description="-1 where the size is open.")
    bytes: int | None = Field(description="Of a constant; None for a tensor that is computed.")
    scales: tuple[float, ...] = Field(description="One, or one a channel; empty where nothing is quantized.")
    zero_points: tuple[int, ...]
    quantized_dimension: int = Field(description="The channels' dimension, where there are several scales.")


class OperatorDescription(Config):
    """One operator of a graph."""

    name: str = Field(description="LiteRT's, for example CONV_2D.")
    version: int
    inputs: tuple[int, ...] = Field(description="Positions in the graph's tensors; -1 for one that is left out.")
    outputs: tuple[int, ...]


class GraphDescription(Config):
    """One graph: the main one, or the branch or body of an operator."""

    name: str
    tensors: tuple[TensorDescription, ...]
    operators: tuple[OperatorDescription, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class MetadataEntry(Config):
    """A named piece of data that a runtime doesn't need."""

    name: str
    bytes: int


class TargetSupport(Config):
    """What a target's documented rules say of the operators; the target's own tool may know more."""

    target: str
    supported: int = Field(description="Operators that it runs.")
    unsupported: dict[str, int] = Field(description="How many of which it doesn't.")
    reasons: tuple[str, ...]


class FlatbufferDescription(Config):
    """A flatbuffer, read without running it."""

    digest: str = Field(description="sha256.")
    size_bytes: int
    gzip_bytes: int
    minimum_runtime: str | None = Field(description="Oldest TensorFlow Lite runtime that has every operator; None if the file says none.")
    operators: dict[str, int] = Field(description="How often each occurs, in all graphs.")
    constant_bytes: int = Field(description="Of all constants together.")
    signatures: dict[str, Signature]
    graphs: tuple[GraphDescription, ...]
    metadata: tuple[MetadataEntry, ...]
    model_metadata: ModelMetadata | None = Field(default=None, description="What the file's TFLite Metadata says; None without any.")
    targets: tuple[TargetSupport, ...]

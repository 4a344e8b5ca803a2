"""TFLiteExporter: how the flatbuffer is made, and the manifest that goes with it."""

import re
import unicodedata
from typing import Any, Literal

from pydantic import Field, field_validator

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.conversion import ConversionConfig
from tfx_edge.schemas.cpp_names import cpp_namespace, namespace_of
from tfx_edge.schemas.labels import checked_labels, read_labels
from tfx_edge.schemas.lineage import RunInfo, Toolchain
from tfx_edge.schemas.preprocessing import Preprocessing
from tfx_edge.schemas.provenance import Provenance
from tfx_edge.schemas.schemes import Scheme
from tfx_edge.schemas.target import Target
from tfx_edge.schemas.tensors import Signature

Features = Literal["transformed", "raw"]

_ID = r"\(*[A-Za-z0-9][A-Za-z0-9.:+-]*\)*"
_SPDX = rf"{_ID}(?: (?:AND|OR|WITH) {_ID})*"


class ExportConfig(Config):
    """Nothing here changes a weight."""

    name: str = Field(
        default="", max_length=200, description="What apps call the model. It and all below up to labels stand in the flatbuffer too."
    )
    description: str = Field(default="", max_length=1000, description="One sentence about the model.")
    version: str = Field(default="", max_length=100, description="The model's version, as you count.")
    author: str = Field(default="", max_length=200, description="Who answers for it.")
    license: str = Field(
        default="", max_length=200, description="SPDX expression, for example Apache-2.0 or MIT OR Apache-2.0; your own: LicenseRef-Name."
    )
    labels: tuple[str, ...] = Field(
        default=(), description="What the positions of the output's last dimension stand for; or the path of a file, a label a line."
    )
    features: Features = Field(
        default="transformed",
        description="What a device feeds: transformed features, or raw ones, with Transform's preprocessing inside the flatbuffer.",
    )
    conversion: ConversionConfig | None = Field(
        default=None, description="Without a plan: batch, signatures, TensorFlow's operators; a plan says itself how it was made."
    )
    targets: tuple[str | Target, ...] = Field(
        default=(),
        description="Devices whose toolchain needs files beside the flatbuffer, by profile or with settings: tflm gets model.cc and "
        "model.h, ethos-u* model_vela.tflite, others nothing. Budgets are the gate's.",
    )
    cpp_namespace: str | None = Field(default=None, description="tflm: C++ namespace of model.cc; None: made of name, or model.")

    @field_validator("targets")
    @classmethod
    def _one_of_a_kind(cls, targets: tuple[str | Target, ...]) -> tuple[Target, ...]:
        resolved = tuple(Target(profile=target) if isinstance(target, str) else target for target in targets)
        for tool in ("tflite-micro", "vela"):
            names = [target.resolve().name for target in resolved if target.resolve().tool == tool]
            if len(names) > 1:
                raise ValueError(f"{' and '.join(names)} would write the same files; export a bundle for each")
        return resolved

    @field_validator("labels", mode="before")
    @classmethod
    def _from_file(cls, labels: Any) -> Any:
        return read_labels(labels) if isinstance(labels, str) else labels

    @field_validator("labels")
    @classmethod
    def _have_a_line_each(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        return checked_labels(labels)

    @field_validator("name", "description", "version", "author")
    @classmethod
    def _is_one_line(cls, text: str) -> str:
        if any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text):
            raise ValueError("expected one line of text without control characters, since apps and terminals show it as it is")
        return text

    @field_validator("license")
    @classmethod
    def _is_spdx(cls, text: str) -> str:
        if text and not re.fullmatch(_SPDX, text):
            raise ValueError("expected an SPDX expression, for example Apache-2.0, MIT OR Apache-2.0 or LicenseRef-Proprietary")
        return text

    @field_validator("cpp_namespace")
    @classmethod
    def _is_namespace(cls, name: str | None) -> str | None:
        return None if name is None else cpp_namespace(name)

    @property
    def namespace(self) -> str:
        """The C++ namespace of `model.cc`."""
        return self.cpp_namespace or namespace_of(self.name)


class Manifest(Config):
    """`edge/manifest.json` of an edge model: what a device or a person must know before loading it."""

    name: str = ""
    description: str
    version: str = ""
    author: str = ""
    license: str = Field(default="", description="SPDX expression; empty if none was given.")
    labels: tuple[str, ...] = Field(default=(), description="Of the positions of an output's last dimension; empty if none were given.")
    digest: str = Field(description="sha256 of the flatbuffer.")
    source_model_digest: str | None = Field(
        default=None,
        description="Of the SavedModel: sha256 of what `sha256sum` prints for its files, sorted by path, with paths inside of its folder.",
    )
    float_model_digest: str = Field(description="sha256 of the float flatbuffer it was made from.")
    plan_digest: str | None = Field(
        description="sha256 of plan.json, ranges.json and constants.npz, one after the other; None without a plan."
    )
    scheme: Scheme
    features: Features = Field(
        default="transformed", description="What the inputs are: Transform's outputs, or the raw features that it makes them of."
    )
    signature: Signature = Field(description="The one that apps call: serving_default, or the only one.")
    signatures: dict[str, Signature] = Field(default_factory=dict, description="All of them, by name.")
    preprocessing: Preprocessing | None = Field(
        default=None,
        description="What Transform does before the model, inside the flatbuffer where features is raw; None without Transform.",
    )
    targets: tuple[str, ...] = Field(default=(), description="Profiles of the devices that files of the bundle are for.")
    size_bytes: int = Field(ge=1, description="The flatbuffer as it is.")
    gzip_bytes: int = Field(ge=1, description="The flatbuffer after gzip -9, which is about what a device downloads.")
    float_size_bytes: int = Field(ge=1, description="The float flatbuffer as it is.")
    float_gzip_bytes: int = Field(ge=1, description="The float flatbuffer after gzip -9.")
    minimum_runtime: str | None = Field(
        description="Oldest TensorFlow Lite runtime version that has every operator; None if the converter wrote none."
    )
    operators: dict[str, int] = Field(description="How often each LiteRT operator occurs.")
    made_with: Toolchain | None = None
    run: RunInfo = Field(default=RunInfo(), description="All that differs between two exports of the same model and plan.")
    provenance: Provenance | None = Field(default=None, description="Of a released model, as EdgePromoter adds it.")

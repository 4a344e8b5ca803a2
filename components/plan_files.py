"""The files of a QuantizationPlan artifact."""

import hashlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tfx.dsl.io import fileio
from tfx.types.artifact import Artifact

from tfx_edge.components.documents import read_bytes, write_bytes, write_document
from tfx_edge.litert.planning import Planned
from tfx_edge.schemas import EdgeError, QuantizationPlan, TensorRanges

_PLAN, _RANGES, _CONSTANTS = "plan.json", "ranges.json", "constants.npz"


def write(uri: str, planned: Planned) -> None:
    """Writes a plan, its ranges and its constants, the plan last: where it is, all are."""
    write_document(f"{uri}/{_RANGES}", planned.ranges)
    if planned.constants:
        write_bytes(f"{uri}/{_CONSTANTS}", _npz(planned.constants))
    write_document(f"{uri}/{_PLAN}", planned.plan)


def describe(artifact: Artifact, plan: QuantizationPlan) -> None:
    """Sets what an artifact's custom properties tell of its plan."""
    artifact.set_string_custom_property("scheme", plan.config.scheme)
    artifact.set_string_custom_property("method", plan.method)
    artifact.set_string_custom_property("float_model_digest", plan.float_model_digest)


def read(uri: str) -> tuple[Planned, str]:
    """Reads a plan with what belongs to it, and the sha256 of all its files, one after the other.

    Raises:
        ConfigError: a file was edited into something that isn't a plan or ranges.
        EdgeError: `constants.npz` can't be read.
    """
    plan, ranges = read_bytes(f"{uri}/{_PLAN}"), read_bytes(f"{uri}/{_RANGES}")
    there = fileio.exists(f"{uri}/{_CONSTANTS}")
    constants = read_bytes(f"{uri}/{_CONSTANTS}") if there else b""
    planned = Planned(QuantizationPlan.from_json(plan), TensorRanges.from_json(ranges), _constants(constants, uri) if there else {})
    return planned, hashlib.sha256(plan + ranges + constants).hexdigest()


def _npz(constants: Mapping[int, NDArray[Any]]) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **{str(index): constants[index] for index in sorted(constants)})
    return content.getvalue()


def _constants(content: bytes, uri: str) -> dict[int, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {int(index): values for index, values in arrays.items()}
    except Exception as error:  # a damaged archive raises whatever zipfile, zlib or NumPy raise
        raise EdgeError(f"{uri}/{_CONSTANTS} can't be read ({' '.join(str(error).split())}); run Quantizer again") from error

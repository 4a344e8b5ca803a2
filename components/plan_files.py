"""The two files of a QuantizationPlan artifact."""

import hashlib

from tfx.types.artifact import Artifact

from tfx_edge.components.documents import read_bytes, write_document
from tfx_edge.schemas import QuantizationPlan, TensorRanges

_PLAN, _RANGES = "plan.json", "ranges.json"


def write(uri: str, plan: QuantizationPlan, ranges: TensorRanges) -> None:
    """Writes a plan and its ranges, the plan last: where it is, both are."""
    write_document(f"{uri}/{_RANGES}", ranges)
    write_document(f"{uri}/{_PLAN}", plan)


def describe(artifact: Artifact, plan: QuantizationPlan) -> None:
    """Sets what an artifact's custom properties tell of its plan."""
    artifact.set_string_custom_property("scheme", plan.config.scheme)
    artifact.set_string_custom_property("method", plan.method)
    artifact.set_string_custom_property("float_model_digest", plan.float_model_digest)


def read(uri: str) -> tuple[QuantizationPlan, TensorRanges, str]:
    """Reads a plan, its ranges, and the sha256 of both files, one after the other.

    Raises:
        ConfigError: a file was edited into something that isn't a plan or ranges.
    """
    plan, ranges = read_bytes(f"{uri}/{_PLAN}"), read_bytes(f"{uri}/{_RANGES}")
    return QuantizationPlan.from_json(plan), TensorRanges.from_json(ranges), hashlib.sha256(plan + ranges).hexdigest()

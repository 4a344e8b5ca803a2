"""Where a release comes from, as TFX's artifacts tell it."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from tfx_edge.components import keys
from tfx_edge.components.documents import read_bytes
from tfx_edge.components.lineage import folder_digest, run_info
from tfx_edge.schemas import DataSource, Evaluation, GateReport, Provenance
from tfx_edge.schemas.provenance import IMAGE_VARIABLE

OVERALL = "Overall"


def provenance_of(context: BaseExecutor.Context | None, inputs: Mapping[str, Sequence[Artifact]]) -> Provenance:
    """Reads what EdgePromoter's inputs say of themselves.

    Args:
        context: of the executor.
        inputs: its input artifacts by key; what isn't there is None in the result.
    """
    examples, baseline, report = (next(iter(inputs.get(key) or []), None) for key in (keys.EXAMPLES, keys.BASELINE_MODEL, keys.REPORT))
    return Provenance(
        run=run_info(context, inputs),
        data=None if examples is None else data_source(examples),
        baseline_digest=None if baseline is None else folder_digest(path_utils.serving_model_path(baseline.uri)),
        evaluation=None if report is None else _evaluation(f"{report.uri}/report.json"),
        image=os.environ.get(IMAGE_VARIABLE) or None,
    )


def data_source(examples: Artifact) -> DataSource:
    """What an ExampleGen wrote on its output: span and version where it counts them, and `split:<name>,<fingerprint>` a line."""
    lines = examples.get_string_custom_property("input_fingerprint").splitlines()
    parts = (re.fullmatch(r"split:([^,]+),(.+)", line) for line in lines)
    return DataSource(
        span=_number(examples, "span"),
        version=_number(examples, "version"),
        fingerprints={part[1]: part[2] for part in parts if part is not None},
    )


def _number(examples: Artifact, name: str) -> int | None:
    if not examples.has_custom_property(name):
        return None
    text = examples.get_string_custom_property(name) or str(examples.get_int_custom_property(name))
    return int(text) if text.isdigit() else None


def _evaluation(path: str) -> Evaluation:
    content = read_bytes(path)
    metrics = tuple(metric for metric in GateReport.from_json(content).metrics if metric.slice == OVERALL)
    return Evaluation(report_digest=hashlib.sha256(content).hexdigest(), metrics=metrics)

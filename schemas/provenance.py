"""Where a release comes from: the pipeline's run, the data, the baseline, what the gate measured, and what it was made in."""

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.gate_report import MetricComparison
from tfx_edge.schemas.lineage import RunInfo

IMAGE_VARIABLE = "TFX_EDGE_IMAGE"
"""Environment variable that tells a component its container's image; a compiled package sets it."""


class DataSource(Config):
    """The Examples that the run started from."""

    span: int | None = Field(default=None, description="TFX's span; None where the ExampleGen counts none.")
    version: int | None = Field(default=None, description="TFX's version of the span.")
    fingerprints: dict[str, str] = Field(default_factory=dict, description="ExampleGen's fingerprint of the files, by split.")


class Evaluation(Config):
    """What EdgeValidator found."""

    report_digest: str = Field(description="sha256 of report.json.")
    metrics: tuple[MetricComparison, ...] = Field(description="Overall, float baseline and candidate.")


class Provenance(Config):
    """What is None was not handed to EdgePromoter, or not told by the orchestrator."""

    run: RunInfo = Field(default=RunInfo(), description="EdgePromoter's.")
    data: DataSource | None = None
    baseline_digest: str | None = Field(
        default=None, description="Of the float model the gate compared with: as Manifest.source_model_digest."
    )
    evaluation: Evaluation | None = None
    image: str | None = Field(default=None, description="The container's image, with its digest where it was named by one.")

"""What `tfx-edge report` draws its page from: one run, all that its artifacts say, and the runs before it."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.decisions import PairedDecisions
from tfx_edge.schemas.export import Manifest
from tfx_edge.schemas.gate_report import GateReport
from tfx_edge.schemas.pruning import SparsityReport
from tfx_edge.schemas.quantization import QuantizationPlan
from tfx_edge.schemas.search import SearchReport
from tfx_edge.schemas.selection import SelectionReport


class JudgedModel(Config):
    """An edge model that a gate of the run judged, and how it was made. What is None isn't in the run."""

    name: str = Field(description="Of the variant, or of the EdgeValidator.")
    uri: str | None = Field(default=None, description="Of the model's artifact.")
    report: GateReport
    decisions: PairedDecisions | None = None
    manifest: Manifest | None = None
    plan: QuantizationPlan | None = None
    sparsity: SparsityReport | None = None
    missing: dict[str, str] = Field(default_factory=dict, description="Why something is None where it should be there, by field.")


class LineageArtifact(Config):
    """An artifact that a component read or wrote."""

    key: str = Field(description="What the component calls it.")
    type: str
    id: int
    uri: str


class LineageStep(Config):
    """A component of the run."""

    component: str
    state: str = Field(description="COMPLETE, CACHED, FAILED and so on, as ML Metadata has it.")
    started: str = Field(description="ISO 8601, UTC.")
    seconds: float | None = Field(default=None, ge=0, description="From start to last update; None for results of an earlier run.")
    inputs: tuple[LineageArtifact, ...]
    outputs: tuple[LineageArtifact, ...]


class PastRun(Config):
    """A gate's verdict in one run."""

    run_id: str
    validator: str = Field(description="Id of the EdgeValidator.")
    started: str = Field(description="ISO 8601, UTC.")
    state: Literal["blessed", "not blessed", "no verdict"]
    metric: str | None = Field(default=None, description="The first threshold's; None where report.json is gone.")
    baseline: float | None = Field(default=None, description="That metric of the float model, overall.")
    candidate: float | None = None
    size_bytes: int | None = None
    gzip_bytes: int | None = None
    note: str = Field(default="", description="Why there is no more to tell.")


class RunReport(Config):
    """One run of a pipeline, or a gate's report alone."""

    pipeline: str | None = Field(default=None, description="None of a report that is no run's.")
    run_id: str | None = None
    started: str | None = Field(default=None, description="ISO 8601, UTC.")
    models: tuple[JudgedModel, ...] = Field(min_length=1, description="The one that goes on first.")
    search: SearchReport | None = Field(default=None, description="CompressionTuner's, where the run has one.")
    selection: SelectionReport | None = Field(default=None, description="ModelSelector's, where the run has one.")
    lineage: tuple[LineageStep, ...] = Field(default=(), description="In the order in which the components ran.")
    history: tuple[PastRun, ...] = Field(default=(), description="Oldest first, this run among them.")
    missing: dict[str, str] = Field(default_factory=dict, description="Why something should be there and isn't, by field.")

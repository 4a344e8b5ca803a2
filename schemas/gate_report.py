"""EdgeValidator: what was measured, and the verdict."""

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.gate import GateConfig
from tfx_edge.schemas.statistics import Interval, LayerErrors, OutputDrift
from tfx_edge.schemas.target import TargetReport


class MetricComparison(Config):
    """One metric in one slice."""

    metric: str
    slice: str = Field(description="Overall, or the slice's features and values.")
    examples: int = Field(ge=0)
    baseline: float | None = Field(description="None where it could not be computed.")
    candidate: float | None = Field(description="None where it could not be computed.")
    difference: float | None = Field(description="Candidate minus baseline.")
    interval: Interval | None = Field(default=None, description="Of the paired difference, where the config asks for a confidence.")


class SliceDrift(Config):
    """How far predictions moved in one slice."""

    slice: str = Field(description="Overall, or the slice's features and values.")
    outputs: tuple[OutputDrift, ...]


class GateReport(Config):
    """`report.json` of an EdgeReport artifact. `blessed` is true only when `reasons` is empty."""

    blessed: bool
    reasons: tuple[str, ...] = Field(description="Why not blessed, each a line that a person can act on.")
    model_digest: str | None = Field(default=None, description="sha256 of the candidate flatbuffer that was judged.")
    files: dict[str, str] = Field(
        default_factory=dict, description="sha256 of what lay in the candidate's edge/ then, by path: golden vectors, manifest, ..."
    )
    config: GateConfig
    metrics: tuple[MetricComparison, ...]
    drift: tuple[SliceDrift, ...] = Field(default=(), description="How far predictions moved, the overall slice first.")
    layers: LayerErrors | None = Field(default=None, description="Errors by operator; None where they couldn't be measured.")
    size_bytes: int | None = Field(description="The candidate flatbuffer.")
    gzip_bytes: int | None = Field(description="The candidate flatbuffer after gzip -9.")
    baseline_size_bytes: int | None = Field(default=None, description="The baseline as a float flatbuffer; None where nothing needed one.")
    baseline_gzip_bytes: int | None = Field(default=None, description="The same after gzip -9.")
    latency_ms: float | None = Field(default=None, description="The candidate's time for one example here; None unless a budget asks.")
    baseline_latency_ms: float | None = Field(default=None, description="The float flatbuffer's, measured in turn with it.")
    peak_memory_bytes: int | None = Field(default=None, description="Memory that the candidate adds to a process; None unless asked.")
    operators: dict[str, int] = Field(default_factory=dict, description="How often the candidate has each operator.")
    targets: tuple[TargetReport, ...] = Field(default=(), description="What each target's tool found.")
    notes: tuple[str, ...] = Field(default=(), description="What could not be measured and nothing depends on.")
    runtime: str = Field(description="The LiteRT that ran the candidate.")

    def check(self) -> None:
        if self.blessed == bool(self.reasons):
            raise ValueError(f"blessed {self.blessed} with {len(self.reasons)} reasons against it")

"""ModelSelector: which of several gated candidates goes on, and what all of them reached."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config


class SelectionConfig(Config):
    """The best blessed candidate is the one with the least of this."""

    objective: Literal["gzip_bytes", "size_bytes", "latency_ms"] = Field(
        default="gzip_bytes",
        description="Of the flatbuffer. latency_ms is measured only where the gate's budget has max_latency_ratio.",
    )


class CandidateResult(Config):
    """One candidate as its gate saw it."""

    validator: str = Field(description="Id of the EdgeValidator that judged it.")
    model: str = Field(description="URI of the edge model.")
    blessed: bool
    cost: float | None = Field(description="The objective; None where it wasn't measured.")
    metric: str = Field(description="The first threshold's metric.")
    value: float | None = Field(description="That metric overall; None where it could not be computed.")
    on_front: bool = Field(description="Blessed, and no other blessed one is as good in both cost and metric and better in one.")


class SelectionReport(Config):
    """`selection.json` of ModelSelector's report."""

    config: SelectionConfig
    chosen: str | None = Field(description="URI of the model that goes on; None where none is blessed.")
    candidates: tuple[CandidateResult, ...] = Field(description="By cost, the blessed ones first.")

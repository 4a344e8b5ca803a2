from pathlib import Path

import pytest

from tfx_edge.cli.summary import RunSummary, render
from tfx_edge.schemas import (
    FineTuningConfig,
    GateConfig,
    GateReport,
    Manifest,
    MetricComparison,
    PruningConfig,
    Signature,
    SparsityReport,
    Threshold,
)

MANIFEST = Manifest(
    description="",
    digest="0",
    float_model_digest="0",
    plan_digest=None,
    scheme="int8",
    signature=Signature(inputs=(), outputs=()),
    size_bytes=1_000,
    gzip_bytes=500,
    float_size_bytes=4_000,
    float_gzip_bytes=3_500,
    minimum_runtime=None,
    operators={},
)
SPARSITY = SparsityReport(config=PruningConfig(fine_tuning=FineTuningConfig(label_key="y")), layers=(), sparsity=0.503)


def summary(*reasons: str, pushed: Path | None = None) -> RunSummary:
    report = GateReport(
        blessed=not reasons,
        reasons=reasons,
        config=GateConfig(label_key="y", thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01),)),
        metrics=(
            MetricComparison(
                metric="SparseCategoricalAccuracy", slice="Overall", examples=9, baseline=0.98, candidate=0.96, difference=-0.02
            ),
            MetricComparison(metric="SparseCategoricalAccuracy", slice="y=3", examples=9, baseline=0.5, candidate=0.4, difference=-0.1),
        ),
        size_bytes=1_000,
        gzip_bytes=500,
        baseline_size_bytes=4_100,
        baseline_gzip_bytes=3_600,
        runtime="LiteRT",
    )
    return RunSummary(report, MANIFEST, SPARSITY, pushed, 3)


def test_the_table_compares_float_and_candidate_and_says_where_the_model_went(capsys: pytest.CaptureFixture[str]) -> None:
    render(summary(pushed=Path("/somewhere/pushed/1")), seconds=61.4)
    shown = capsys.readouterr().out
    for figure in ("0.9800", "0.9600", "-0.0200", "4,100", "1,000", "4.1 times", "3,600", "500", "7.2 times", "50.3%", "BLESSED"):
        assert figure in shown
    assert "0.5000" not in shown, "only the overall slice belongs in the table"
    assert "/somewhere/pushed/1" in shown
    assert "NOT BLESSED" not in shown


def test_a_refusal_shows_every_reason_and_that_nothing_was_pushed(capsys: pytest.CaptureFixture[str]) -> None:
    render(summary("accuracy: too low", "size: too large"), seconds=1)
    shown = capsys.readouterr().out
    assert "NOT BLESSED" in shown
    assert "accuracy: too low" in shown
    assert "size: too large" in shown
    assert "nothing" in shown

"""Tells others what the gate decided: a notification and metrics, where they are set up."""

from datetime import datetime, timezone

from tfx_edge.observability import current_run, metrics
from tfx_edge.observability.notifier import notify
from tfx_edge.release.actor import current_actor
from tfx_edge.schemas import GateReport, Notification


def tell_verdict(report: GateReport, model: str) -> None:
    """Tells a verdict.

    Args:
        report: of the gate.
        model: the candidate's URI.
    """
    run, overall = current_run(), [metric for metric in report.metrics if metric.slice == "Overall"]
    metrics.count("tfx_edge.gate.verdicts", blessed=report.blessed)
    for metric in overall:
        if metric.difference is not None:
            metrics.measure("tfx_edge.gate.difference", metric.difference, metric=metric.metric)
    first = overall[0] if overall else None
    notify(
        Notification(
            event="blessed" if report.blessed else "not_blessed",
            time=datetime.now(timezone.utc),
            summary=_summary(report, run.pipeline or "a model"),
            pipeline=run.pipeline,
            run_id=run.run_id,
            component=run.component,
            who=current_actor(),
            model=model,
            model_digest=report.model_digest,
            size_bytes=report.size_bytes,
            metric=first.metric if first else None,
            baseline=first.baseline if first else None,
            candidate=first.candidate if first else None,
            reasons=report.reasons,
        )
    )


def _summary(report: GateReport, name: str) -> str:
    if not report.blessed:
        more = f" (and {len(report.reasons) - 1} more)" if len(report.reasons) > 1 else ""
        return f"{name}: not blessed: {report.reasons[0]}{more}"
    first = next((metric for metric in report.metrics if metric.slice == "Overall" and metric.candidate is not None), None)
    told = [f"{first.metric} {first.candidate:.4f}" if first else ""]
    told.append(f"(float {first.baseline:.4f})" if first and first.baseline is not None else "")
    size = f", {report.size_bytes:,} B" if report.size_bytes is not None else ""
    return " ".join([f"{name}: blessed", *filter(None, told)]) + size

"""A gate's report on the terminal."""

import click

from tfx_edge.schemas import GateReport


def show_report(report: GateReport) -> None:
    """Prints metrics, sizes, and the verdict with its reasons."""
    for metric in report.metrics:
        values = [f"float {metric.baseline:.4f}" if metric.baseline is not None else None]
        values.append(f"edge {metric.candidate:.4f}" if metric.candidate is not None else None)
        values.append(f"{metric.difference:+.4f}" if metric.difference is not None else None)
        if metric.interval is not None and metric.interval.low is not None:
            values.append(
                f"from {metric.interval.low:+.4f} to {metric.interval.high:+.4f} with {metric.interval.confidence:.0%} confidence"
            )
        told = ", ".join(value for value in values if value is not None) or "could not be computed"
        click.echo(f"{metric.metric} {metric.slice}: {told} ({metric.examples} examples)")
    if report.size_bytes is not None:
        was = f", float {report.baseline_size_bytes:,} B" if report.baseline_size_bytes is not None else ""
        click.echo(f"size: {report.size_bytes:,} B{was}")
    click.echo("verdict: BLESSED" if report.blessed else "verdict: NOT BLESSED")
    for reason in report.reasons:
        click.echo(f"  {reason}")

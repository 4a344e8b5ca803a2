"""Both models' metrics, overall and by slice, and how far predictions moved, as parts of a page."""

from collections.abc import Iterator

from tfx_edge.report import charts
from tfx_edge.report.bounds import OVERALL, allowed_drop, is_bounded, loss, news
from tfx_edge.report.numbers import NOTHING, cell, number, text
from tfx_edge.report.parts import Cell, Chart, Part, Section, Table, cut
from tfx_edge.schemas import GateReport, MetricComparison

_ROWS, _MARKS = 600, 40


def metrics_section(report: GateReport) -> Section:
    """Both models' metrics, overall and by slice, with intervals."""
    if not report.metrics:
        return Section("metrics", "Metrics", absent=("No metric: the models couldn't be evaluated; see the reasons.",))
    confidence = report.config.confidence
    absent = (
        [] if confidence else ["Intervals: none, since the gate has no confidence; with one, 0.95 say, each difference gets its interval."]
    )
    parts: list[Part] = [_metrics_table(report)]
    chart = _differences(report)
    if chart is None:
        absent.append("Chart of differences: no metric of the thresholds has a value of both models.")
    else:
        parts.insert(0, chart)
    return Section("metrics", "Float against edge model", tuple(parts), tuple(absent))


def _metrics_table(report: GateReport) -> Table:
    by_loss = sorted(report.metrics, key=lambda m: -loss(report.config, m))
    rows, note = cut(report.metrics if len(report.metrics) <= _ROWS else by_loss, _ROWS, "rows, those that lost most")
    has_intervals = any(m.interval is not None for m in rows)
    columns = ("metric", "slice", "examples", "float", "edge", "difference", *(("interval",) if has_intervals else ()), "gate")
    return Table(
        "Metrics of both models",
        columns,
        tuple(tuple(_metric_row(report, m, has_intervals)) for m in rows),
        frozenset(range(2, 7 if has_intervals else 6)),
        note or ("" if not has_intervals else f"Intervals are of the difference, at {report.config.confidence:.0%} confidence."),
    )


def _metric_row(report: GateReport, m: MetricComparison, has_intervals: bool) -> Iterator[Cell]:
    yield text(m.metric)
    yield text(m.slice)
    yield Cell(f"{m.examples:,}", m.examples)
    yield cell(m.baseline)
    yield cell(m.candidate)
    yield cell(m.difference, sign=True, tone=news(report.config, m))
    if has_intervals:
        known = m.interval is not None and m.interval.low is not None
        low, high = (m.interval.low, m.interval.high) if m.interval is not None else (None, None)
        yield Cell(f"{number(low, sign=True)} to {number(high, sign=True)}" if known else NOTHING, low)
    refused = any(reason.startswith(f"{m.metric}, slice {m.slice} (") for reason in report.reasons)
    yield text("refused", "bad") if refused else text("no objection" if is_bounded(report.config, m) else "")


def _differences(report: GateReport) -> Chart | None:
    threshold = next(
        (t for t in report.config.thresholds if any(m.metric == t.title and m.difference is not None for m in report.metrics)), None
    )
    if threshold is None:
        return None
    every = [m for m in report.metrics if m.metric == threshold.title and m.difference is not None]
    overall, slices = [m for m in every if m.slice == OVERALL], [m for m in every if m.slice != OVERALL]
    shown, note = cut(sorted(slices, key=lambda m: -loss(report.config, m)), _MARKS, "slices, those that lost most")
    rows = [
        {
            "slice": m.slice,
            "difference": m.difference,
            "low": m.interval.low if m.interval else None,
            "high": m.interval.high if m.interval else None,
            "worse": news(report.config, m) == "bad",
            "limit": None if (drop := allowed_drop(report.config, m)) is None else -drop if threshold.rises else drop,
        }
        for m in (*overall, *shown)
    ]
    if any(row["limit"] is not None for row in rows):
        note = f"{note} The red marks are the largest loss that max_drop allows.".strip()
    table = Table(
        "Differences",
        ("slice", "difference", "from", "to"),
        tuple((text(r["slice"]), cell(r["difference"], sign=True), cell(r["low"], sign=True), cell(r["high"], sign=True)) for r in rows),
        frozenset({1, 2, 3}),
    )
    return Chart(f"{threshold.title} by slice, the worst first", charts.differences(rows, threshold.title), table, note)


def drift_section(report: GateReport) -> Section:
    """How far predictions moved, by slice."""
    if not report.drift:
        return Section("drift", "Drift", absent=("Drift: the models couldn't be evaluated, so there are no predictions to compare.",))
    every = [(drift.slice, output) for drift in report.drift for output in drift.outputs]
    if len(every) > _ROWS:
        every.sort(key=lambda pair: -(pair[1].flip_rate or 0.0))
    shown, note = cut(every, _ROWS, "rows, those where most decisions changed")
    rows = tuple(
        (
            text(slice_),
            text(output.output),
            Cell(f"{output.examples:,}", output.examples),
            cell(output.flips, 0, tone="bad" if output.flips else ""),
            Cell(NOTHING if output.flip_rate is None else f"{output.flip_rate:.1%}", output.flip_rate),
            cell(output.mean_abs_error),
            cell(output.worst_abs_error),
            cell(output.sqnr_db, 1),
        )
        for slice_, output in shown
    )
    columns = ("slice", "output", "examples", "flips", "share", "mean error", "worst error", "SQNR, dB")
    table = Table("How far predictions moved", columns, rows, frozenset(range(2, 8)), note)
    intro = "Whatever the labels say: decisions that changed, and errors of the predictions. SQNR: signal to quantization noise."
    return Section("drift", "Drift of the predictions", (table,), intro=intro)

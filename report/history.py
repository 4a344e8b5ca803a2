"""The verdicts of past runs, as parts of a page."""

from tfx_edge.report import charts
from tfx_edge.report.numbers import cell, number, size, text
from tfx_edge.report.parts import Chart, Part, Section, Table
from tfx_edge.schemas import PastRun, RunReport

_RUNS = 100


def history_section(run: RunReport) -> Section:
    """The first threshold's metric and the size, run by run."""
    title = "History"
    if not run.history:
        why = run.missing.get("history", "this is a gate's report alone, and ML Metadata has the runs.")
        return Section("history", title, absent=(f"History: {why}",))
    past_runs, note = (
        run.history[-_RUNS:],
        "" if len(run.history) <= _RUNS else f"The last {_RUNS} of {len(run.history):,}; the others are in the JSON.",
    )
    absent = [] if len(run.history) > 1 else ["Charts over runs: this is the first run."]
    parts: list[Part] = []
    validators = dict.fromkeys(past.validator for past in past_runs)
    if len(run.history) > 1:
        for validator in validators:
            of = f", {validator}" if len(validators) > 1 else ""
            parts += _charts([past for past in past_runs if past.validator == validator], of)
    rows = tuple(
        (
            text(past.started),
            text(past.validator),
            text(past.state, {"blessed": "good", "not blessed": "bad", "no verdict": ""}[past.state]),  # type: ignore[arg-type]
            text(past.metric),
            cell(past.baseline),
            cell(past.candidate),
            cell(past.size_bytes, 0),
            cell(past.gzip_bytes, 0),
            text(past.run_id),
            text(past.note),
        )
        for past in reversed(past_runs)
    )
    columns = ("started, UTC", "gate", "verdict", "metric", "float", "edge", "bytes", "gzip bytes", "run", "note")
    parts.append(Table("Runs, the latest first", columns, rows, frozenset({4, 5, 6, 7}), note))
    return Section("history", title, tuple(parts), tuple(absent))


def _charts(runs: list[PastRun], of: str) -> list[Chart]:
    numbered = list(enumerate(runs, start=1))
    metric = runs[-1].metric
    values = [
        {"run": i, "model": model, "value": value, "told": f"run {i}, {model}: {number(value)}", "refused": past.state == "not blessed"}
        for i, past in numbered
        if past.metric == metric
        for model, value in (("float", past.baseline), ("edge", past.candidate))
        if value is not None
    ]
    sizes = [
        {
            "run": i,
            "model": "edge",
            "value": past.gzip_bytes / 1000,
            "told": f"run {i}: {size(past.gzip_bytes)}",
            "refused": past.state == "not blessed",
        }
        for i, past in numbered
        if past.gzip_bytes is not None
    ]
    note = "A cross is a model that wasn't blessed."
    found = []
    if values and metric is not None:
        found.append(Chart(f"{metric} over runs{of}", charts.history(values, metric, True), _table(numbered), note))
    if sizes:
        found.append(Chart(f"Size after gzip over runs{of}", charts.history(sizes, "kB", False), _table(numbered), note))
    return found


def _table(numbered: list[tuple[int, PastRun]]) -> Table:
    rows = tuple(
        (cell(i, 0), text(p.started), cell(p.baseline), cell(p.candidate), cell(p.gzip_bytes, 0), text(p.state)) for i, p in numbered
    )
    return Table("Runs", ("run", "started, UTC", "float", "edge", "gzip bytes", "verdict"), rows, frozenset({0, 2, 3, 4}))

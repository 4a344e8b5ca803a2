"""Accuracy against size of everything that a run made or tried, as parts of a page."""

from dataclasses import dataclass
from typing import Literal

from tfx_edge.report import charts
from tfx_edge.report.bounds import OVERALL
from tfx_edge.report.cost import float_sizes
from tfx_edge.report.numbers import cell, number, size, text
from tfx_edge.report.parts import Chart, Section, Table, cut
from tfx_edge.schemas import QuantizationPlan, RunReport, SearchReport

_DRAWN, _NAMED = 200, 12


@dataclass(frozen=True)
class _Point:
    name: str
    kind: Literal["float", "passed", "refused"]
    bytes: int
    value: float


def candidates_section(run: RunReport) -> Section:
    """A chart for each place where candidates were measured: the gate, a search, the plans' trials. Each has its own examples."""
    found = [_judged(run), *([_search(run.search)] if run.search is not None else [])]
    found += [_trials(model.plan, model.name) for model in run.models if model.plan is not None and model.plan.trials]
    charts_ = tuple(chart for chart in found if chart is not None)
    absent = () if charts_ else ("Accuracy against size: no model has both a size and a value of the first threshold's metric.",)
    return Section("candidates", "Accuracy against size", charts_, absent)


def _judged(run: RunReport) -> Chart | None:
    metric = run.models[0].report.config.thresholds[0].title
    points = []
    for model in run.models:
        overall = next((m for m in model.report.metrics if m.metric == metric and m.slice == OVERALL), None)
        if overall is None:
            continue
        _, zipped = float_sizes(model)
        baseline = _Point("float", "float", zipped, overall.baseline) if zipped is not None and overall.baseline is not None else None
        if baseline is not None and baseline not in points:
            points.append(baseline)
        if model.report.gzip_bytes is not None and overall.candidate is not None:
            name = model.name if len(run.models) > 1 or model.manifest is None else model.manifest.scheme
            points.append(_Point(name, "passed" if model.report.blessed else "refused", model.report.gzip_bytes, overall.candidate))
    return _chart("What the gate judged", points, metric, "after gzip -9")


def _search(report: SearchReport) -> Chart | None:
    points = []
    for name, trial in [("float", report.reference), *((str(i), t) for i, t in enumerate(report.trials, start=1))]:
        if trial.gzip_bytes is not None and trial.metric is not None:
            kind: Literal["float", "passed", "refused"] = "float" if name == "float" else "passed" if trial.feasible else "refused"
            points.append(_Point(name, kind, trial.gzip_bytes, trial.metric))
    return _chart("Trials of the search", points, report.config.threshold.title, "after gzip -9")


def _trials(plan: QuantizationPlan, model: str) -> Chart | None:
    target = plan.config.accuracy_target
    if target is None:
        return None
    points = [
        _Point(f"{t.step} {t.scheme}".replace("_", " "), "passed" if t.feasible else "refused", t.size_bytes, t.metric)
        for t in plan.trials
        if t.size_bytes is not None and t.metric is not None
    ]
    return _chart(f"Trials of the accuracy target, {model}", points, target.threshold.title, "as it is")


def _chart(title: str, points: list[_Point], metric: str, measured: str) -> Chart | None:
    if not points:
        return None
    shown, note = cut(points, _DRAWN, "candidates")
    rows = [
        {
            "name": p.name,
            "kind": p.kind,
            "size": p.bytes / 1000,
            "value": p.value,
            "label": p.name if len(points) <= _NAMED else "",
            "told": f"{p.name}, {p.kind}: {size(p.bytes)}, {metric} {number(p.value)}",
        }
        for p in shown
    ]
    table = Table(
        title,
        ("candidate", "verdict", "bytes", metric),
        tuple((text(p.name), text(p.kind, "bad" if p.kind == "refused" else ""), cell(p.bytes, 0), cell(p.value)) for p in shown),
        frozenset({2, 3}),
    )
    return Chart(title, charts.scatter(rows, metric, f"size {measured}"), table, f"Up and to the left is better. {note}".strip())

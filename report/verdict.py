"""The top of the page: the verdict, its reasons, and the figures that matter most."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfx_edge.report.bounds import OVERALL, loss, news
from tfx_edge.report.cost import float_sizes
from tfx_edge.report.numbers import NOTHING, number, size, times
from tfx_edge.report.parts import Tone
from tfx_edge.schemas import GateConfig, JudgedModel, Threshold


@dataclass(frozen=True)
class Figure:
    """A number with its name, and what to make of it."""

    name: str
    value: str
    note: str
    tone: Tone = ""


def figures(model: JudgedModel) -> Iterator[Figure]:
    """What a reader wants to know first."""
    report = model.report
    title = report.config.thresholds[0].title
    overall = next((m for m in report.metrics if m.metric == title and m.slice == OVERALL), None)
    if overall is not None:
        note = f"float {number(overall.baseline)}, {number(overall.difference, sign=True)}"
        yield Figure(title, number(overall.candidate), note, news(report.config, overall))
    if (worst := _worst_slice(model)) is not None:
        yield worst
    _, zipped = float_sizes(model)
    if report.gzip_bytes is not None:
        was = f"float {size(zipped)}, {times(zipped, report.gzip_bytes)}" if zipped is not None else "after gzip -9"
        yield Figure("Download, gzip -9", size(report.gzip_bytes), was)
    if report.latency_ms is not None and report.baseline_latency_ms:
        ratio = report.latency_ms / report.baseline_latency_ms
        yield Figure("Latency here", f"{report.latency_ms:.3g} ms", f"{ratio:.2f} of float's", "bad" if ratio > 1 else "good")
    for drift in report.drift[:1]:
        for output in drift.outputs[:1]:
            if output.flips is not None:
                yield Figure("Changed decisions", f"{output.flips:,}", f"of {output.examples:,} examples")


def conditions(config: GateConfig) -> Iterator[str]:
    """What the gate asked for, a line each."""
    for threshold in config.thresholds:
        yield f"{threshold.title}: {', '.join(_bounds(threshold))}, {_where(config, threshold)}"
    if config.confidence is not None:
        correction = "" if config.correction == "none" else f", corrected by {config.correction.title()}"
        yield f"each max_drop with {config.confidence:.0%} confidence{correction}"
    for limit in config.drift:
        values = ", ".join(f"{name} {value:g}" for name, value in limit.model_dump(exclude={"output"}).items() if value is not None)
        yield f"drift{'' if limit.output is None else f' of output {limit.output}'}: {values}"
    for name, value in config.budget.model_dump().items():
        if value is not None:
            yield f"budget {name}: {f'{value:,}' if isinstance(value, (int, float)) else ', '.join(map(str, value))}"
    for target in config.targets:
        held = ", ".join(f"{name} {value:g}" for name, value in target.budgets().items())
        yield f"target {target.resolve().name}{f': {held}' if held else ''}"


def _bounds(threshold: Threshold) -> Iterator[str]:
    if threshold.max_drop is not None:
        yield f"at most {threshold.max_drop:g} worse than float"
    if threshold.lower_bound is not None:
        yield f"at least {threshold.lower_bound:g}"
    if threshold.upper_bound is not None:
        yield f"at most {threshold.upper_bound:g}"


def _where(config: GateConfig, threshold: Threshold) -> str:
    named = " and ".join(f"by {slice_}" for slice_ in (config.slices if threshold.slices is None else threshold.slices))
    return named if threshold.slices is not None else f"overall and {named}" if named else "overall"


def _worst_slice(model: JudgedModel) -> Figure | None:
    """The slice that lost most, of the thresholds' metrics."""
    report = model.report
    bounded = {threshold.title for threshold in report.config.thresholds}
    slices = [m for m in report.metrics if m.metric in bounded and m.slice != OVERALL and m.difference is not None]
    if not slices:
        return None
    worst = max(slices, key=lambda m: loss(report.config, m))
    if loss(report.config, worst) <= 0:
        return Figure("Worst slice", NOTHING, f"none of {len(slices):,} lost anything", "good")
    return Figure("Worst slice", number(worst.difference, sign=True), f"{worst.slice}, {worst.examples:,} examples", "bad")

"""Sizes, latency, memory and targets, with their budgets, as parts of a page."""

from collections.abc import Iterator

from tfx_edge.report import charts
from tfx_edge.report.numbers import cell, number, size, text, times
from tfx_edge.report.parts import Cell, Chart, Facts, Part, Section, Table, cut
from tfx_edge.schemas import GateReport, JudgedModel

_ROWS = 500


def cost_section(model: JudgedModel) -> Section:
    """Sizes, latency, memory and targets, with their budgets."""
    report, absent = model.report, []
    parts: list[Part] = [c for c in (_sizes(model), _latency(report)) if c is not None]
    if report.latency_ms is None:
        absent.append("Latency: not measured, since no budget asks (max_latency_ratio).")
    if report.peak_memory_bytes is None:
        absent.append("Memory: not measured, since no budget asks (max_peak_memory_bytes).")
    used = _budgets(report)
    if used is not None:
        parts.append(used)
    parts += [_placements(report)] if any(target.ops for target in report.targets) else []
    measured = [(f"{t.profile}: {name}", number(value)) for t in report.targets for name, value in t.measurements.items()]
    if measured:
        parts.append(Facts((*measured, *((t.profile, f"judged by {t.tool}") for t in report.targets)), "Targets"))
    if not report.targets:
        absent.append("Targets: the gate names none.")
    return Section("cost", "Size, latency, memory, targets", tuple(parts), tuple(absent))


def float_sizes(model: JudgedModel) -> tuple[int | None, int | None]:
    """Bytes of the float flatbuffer, plain and after gzip: the baseline's, or else that of the model that was quantized."""
    report, manifest = model.report, model.manifest
    if report.baseline_size_bytes is not None:
        return report.baseline_size_bytes, report.baseline_gzip_bytes
    return (None, None) if manifest is None else (manifest.float_size_bytes, manifest.float_gzip_bytes)


def _sizes(model: JudgedModel) -> Chart | None:
    report, (plain, zipped) = model.report, float_sizes(model)
    budget = report.config.budget
    found = (("as it is", plain, report.size_bytes, budget.max_bytes), ("after gzip -9", zipped, report.gzip_bytes, budget.max_gzip_bytes))
    rows = [
        {"what": what, "model": kind, "value": value / 1000, "label": size(value)}
        for what, before, after, _ in found
        for kind, value in (("float", before), ("edge", after))
        if value is not None
    ]
    if not rows:
        return None
    limits = [{"what": what, "limit": limit / 1000} for what, _, _, limit in found if limit is not None]
    table = Table(
        "Sizes in bytes",
        ("file", "float", "edge", "change", "budget"),
        tuple(
            (text(what), cell(before, 0), cell(after, 0), text(times(before, after)), cell(limit, 0))
            for what, before, after, limit in found
        ),
        frozenset({1, 2, 4}),
    )
    note = (
        [] if report.baseline_size_bytes is not None or plain is None else ["Float: the model that was quantized, as a float flatbuffer."]
    )
    note += ["Red marks: budgets."] if limits else []
    return Chart("Size of the flatbuffer", charts.pairs(rows, "kB", limits), table, " ".join(note))


def _latency(report: GateReport) -> Chart | None:
    if report.latency_ms is None or report.baseline_latency_ms is None:
        return None
    both = (("float", report.baseline_latency_ms), ("edge", report.latency_ms))
    rows = [{"what": "one example", "model": kind, "value": value, "label": f"{value:.3g} ms"} for kind, value in both]
    table = Table("Latency", ("model", "ms"), tuple((text(kind), cell(value)) for kind, value in both), frozenset({1}))
    return Chart("Time for one example on the gate's machine", charts.pairs(rows, "ms"), table)


def _budgets(report: GateReport) -> Chart | None:
    """Every budget that is set, as a share of what it allows."""
    rows = list(_used(report))
    if not rows:
        return None
    table = Table(
        "Budgets",
        ("budget", "measured", "limit", "used"),
        tuple(
            (text(what), cell(value), cell(limit), Cell(f"{used:.0f} %", used, "bad" if over else ""))
            for what, value, limit, used, over in rows
        ),
        frozenset({1, 2, 3}),
    )
    drawn = [{"what": what, "used": used, "label": f"{used:.0f} %", "over": over} for what, _, _, used, over in rows]
    note = "Of a least value, as a ratio: the limit over what was measured."
    return Chart("Budgets", charts.budgets(drawn), table, note if any(w.startswith("min_") or ": min_" in w for w, *_ in rows) else "")


def _used(report: GateReport) -> Iterator[tuple[str, float, float, float, bool]]:
    """Budget, measured value, limit, percent used, exceeded."""
    budget = report.config.budget
    ratio = report.baseline_gzip_bytes / report.gzip_bytes if report.baseline_gzip_bytes and report.gzip_bytes else None
    slower = report.latency_ms / report.baseline_latency_ms if report.latency_ms and report.baseline_latency_ms else None
    every = [
        ("max_bytes", report.size_bytes, budget.max_bytes),
        ("max_gzip_bytes", report.gzip_bytes, budget.max_gzip_bytes),
        ("min_gzip_ratio", ratio, budget.min_gzip_ratio),
        ("max_latency_ratio", slower, budget.max_latency_ratio),
        ("max_peak_memory_bytes", report.peak_memory_bytes, budget.max_peak_memory_bytes),
    ]
    for target, found in zip(report.config.targets, report.targets, strict=True) if report.targets else ():
        every += [(f"{found.profile}: {name}", found.measurements.get(what), limit) for what, (name, limit) in target.limits().items()]
    for name, value, limit in every:
        if value is None or not limit:  # a limit of 0 has no share; the target's own reasons tell of it
            continue
        least = name.rpartition(": ")[2].startswith("min_")
        used = (limit / value if value else float("inf")) if least else value / limit
        if used != float("inf"):
            yield name, float(value), float(limit), 100 * used, used > 1


def _placements(report: GateReport) -> Table:
    rows = tuple(
        (text(t.profile), text(op.operator), cell(op.count, 0), text(op.runs_on, "bad" if op.reason else ""), text(op.reason))
        for t in report.targets
        for op in t.ops
    )
    shown, note = cut(rows, _ROWS, "operators")
    return Table("Where operators run", ("target", "operator", "count", "runs on", "why"), tuple(shown), frozenset({2}), note)

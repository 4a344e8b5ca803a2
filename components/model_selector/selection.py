"""The choice among gated candidates, and which of them lie on the front of cost and accuracy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tfx_edge.schemas import CandidateResult, EdgeError, GateReport, SelectionConfig, SelectionReport


@dataclass(frozen=True)
class Candidate:
    """An edge model with what its gate wrote.

    Attributes:
        model: URI.
        validator: id of the EdgeValidator.
        report: its report.
    """

    model: str
    validator: str
    report: GateReport


def select(candidates: Sequence[Candidate], config: SelectionConfig) -> SelectionReport:
    """Chooses the blessed candidate with the lowest cost; of equals the one with the better metric, then the first.

    Args:
        candidates: at least one.
        config: what the cost is.

    Raises:
        EdgeError: a blessed candidate's cost wasn't measured, or the candidates were judged by different first metrics.
    """
    metrics = {_metric(candidate.report) for candidate in candidates}
    if len(metrics) != 1:
        raise EdgeError(f"the candidates' first thresholds are on {', '.join(sorted(metrics))}; give the same gate to all")
    for candidate in candidates:
        if candidate.report.blessed and _cost(candidate.report, config) is None:
            raise EdgeError(
                f"{candidate.validator}: {config.objective} wasn't measured; give the gate's budget max_latency_ratio, or choose gzip_bytes"
            )
    sign = 1.0 if candidates[0].report.config.thresholds[0].rises else -1.0
    points = [(_or_infinite(_cost(c.report, config)), -sign * _or_zero(_value(c.report))) for c in candidates]
    blessed = [point for point, candidate in zip(points, candidates, strict=True) if candidate.report.blessed]
    order = sorted(range(len(candidates)), key=lambda i: (not candidates[i].report.blessed, *points[i], i))
    results = tuple(
        CandidateResult(
            validator=candidates[i].validator,
            model=candidates[i].model,
            blessed=candidates[i].report.blessed,
            cost=_cost(candidates[i].report, config),
            metric=_metric(candidates[i].report),
            value=_value(candidates[i].report),
            on_front=candidates[i].report.blessed and not any(_dominates(other, points[i]) for other in blessed),
        )
        for i in order
    )
    return SelectionReport(config=config, chosen=results[0].model if results[0].blessed else None, candidates=results)


def _dominates(other: tuple[float, float], point: tuple[float, float]) -> bool:
    return other != point and other[0] <= point[0] and other[1] <= point[1]


def _cost(report: GateReport, config: SelectionConfig) -> float | None:
    cost: float | None = getattr(report, config.objective)
    return cost


def _metric(report: GateReport) -> str:
    return report.config.thresholds[0].title


def _value(report: GateReport) -> float | None:
    """The first threshold's metric in the overall slice, which reports have first."""
    return next((m.candidate for m in report.metrics if m.metric == _metric(report) and m.slice == "Overall"), None)


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _or_zero(value: float | None) -> float:
    return 0.0 if value is None else value

"""From what TFMA measured to the reasons against a blessing. Pure functions.

Bounds hold as they are written, and a value that lies on its bound passes. TFMA computes metrics in float32, where 0.94 less
0.93 is more than 0.01, so what a rounding of the values can make doesn't count as a miss.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tfx_edge.components.edge_validator.intervals import EstimateFrom
from tfx_edge.components.edge_validator.slices import SliceKey, gated_slices, matches
from tfx_edge.schemas import GateConfig, Interval, MetricComparison, OutputDrift, Slice, SliceDrift, Threshold

# Relative to the values: half a unit in float32's last place for each of the two, and as much again to spare.
ROUNDING = 2.0**-22


@dataclass(frozen=True)
class Measured:
    """One metric of both models in one slice; None where TFMA gave no number.

    Attributes:
        baseline: of the baseline; None as well for a metric that compares the two, whose value is the candidate's then.
        candidate: of the candidate.
        estimate: how well the difference is known, from some times the examples; None where nothing tells.
    """

    baseline: float | None
    candidate: float | None
    estimate: EstimateFrom | None = None

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline."""
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline


@dataclass(frozen=True)
class SliceResult:
    """One slice that occurred in the data.

    Attributes:
        key: features and values, as TFMA names the slice; empty for the overall one.
        examples: how many TFMA evaluated.
        metrics: one for each threshold of the config and then for each of its metrics, in its order.
        drift: how far predictions moved, for each output.
        weighted: how many of the examples have a weight other than 0; None: all.
    """

    key: SliceKey
    examples: int
    metrics: tuple[Measured, ...]
    drift: tuple[OutputDrift, ...] = ()
    weighted: int | None = None

    @property
    def counted(self) -> int:
        """Examples that the metrics depend on."""
        return self.examples if self.weighted is None else self.weighted

    @property
    def title(self) -> str:
        return ", ".join(f"{feature}={value}" for feature, value in self.key) or "Overall"


def reasons(config: GateConfig, results: Sequence[SliceResult], features: Collection[str]) -> list[str]:
    """Every reason against a blessing, each a line that a person can act on.

    Args:
        config: the gate's conditions.
        results: the slices that occurred.
        features: names of the features that the examples have.
    """
    found: list[str] = []
    gated: list[Slice | None] = []
    for threshold in config.thresholds:
        gated += [s for s in gated_slices(config, threshold) if s not in gated]
    for slice_ in gated:
        found += _missing(slice_, results, features)
    for result in sorted(results, key=_order):
        if any(matches(s, result.key) for s in gated) and result.counted < config.min_examples:
            weighted = "" if result.counted == result.examples else f" of {result.examples} with a weight"
            found.append(
                f"slice {result.title}: {result.counted} examples{weighted}, fewer than min_examples {config.min_examples}; "
                "evaluate on more data, or take the slice out of the threshold"
            )
        for threshold, measured in zip(config.thresholds, result.metrics, strict=False):  # behind them are the config's metrics
            if any(matches(s, result.key) for s in gated_slices(config, threshold)):
                found += _missed(threshold, measured, f"slice {result.title} ({result.examples} examples)")
    return found


def comparisons(config: GateConfig, results: Sequence[SliceResult]) -> tuple[MetricComparison, ...]:
    """Every metric in every slice, for the report; the overall slice first."""
    indices: dict[str, int] = {}
    for i, metric in enumerate((*config.thresholds, *config.metrics)):
        if i < len(config.thresholds) or any(result.metrics[i].candidate is not None for result in results):  # plots have no number
            indices.setdefault(metric.title, i)
    return tuple(
        MetricComparison(
            metric=metric,
            slice=result.title,
            examples=result.examples,
            baseline=_number(result.metrics[i].baseline),
            candidate=_number(result.metrics[i].candidate),
            difference=_number(result.metrics[i].difference),
            interval=_interval(config, result.metrics[i]),
        )
        for metric, i in indices.items()
        for result in sorted(results, key=_order)
    )


def drift_by_slice(results: Sequence[SliceResult]) -> tuple[SliceDrift, ...]:
    """How far predictions moved, for the report; the overall slice first."""
    return tuple(SliceDrift(slice=r.title, outputs=r.drift) for r in sorted(results, key=_order) if r.drift)


def _interval(config: GateConfig, measured: Measured) -> Interval | None:
    if config.confidence is None or measured.estimate is None:
        return None
    return measured.estimate(1).interval(config.confidence)


def _missing(slice_: Slice | None, results: Sequence[SliceResult], features: Collection[str]) -> Iterator[str]:
    if any(matches(slice_, r.key) for r in results):
        return
    if slice_ is None:
        yield "slice Overall: not evaluated; this is a fault of the evaluation, run it again"
        return
    absent = sorted({*slice_.feature_keys, *slice_.feature_values} - set(features))
    if absent:
        there = ", ".join(sorted(features))
        yield f"slice {slice_}: no feature {', '.join(map(repr, absent))} in the examples, which have {there}; name one of these"
    else:
        yield f"slice {slice_}: no example is in it, so its threshold can't hold; evaluate on data that has some, or take the slice out"


def _missed(threshold: Threshold, measured: Measured, where: str) -> Iterator[str]:
    baseline, candidate, difference = measured.baseline, measured.candidate, measured.difference
    needed = {"candidate": candidate} if threshold.max_drop is None else {"candidate": candidate, "baseline": baseline}
    undefined = [f"of the {model} is {'missing' if v is None else v}" for model, v in needed.items() if v is None or not math.isfinite(v)]
    if candidate is None or undefined:
        yield f"{threshold.title}, {where}: the value {' and '.join(undefined)}; look at the predictions, or take another metric"
        return
    values = f"candidate {candidate:.7g}"
    if baseline is not None and difference is not None:
        values += f", baseline {baseline:.7g}, difference {difference:+.7g}"
    for bound in _bounds_missed(threshold, candidate, baseline):
        yield f"{threshold.title}, {where}: {values}; {bound}"


def _bounds_missed(threshold: Threshold, candidate: float, baseline: float | None) -> Iterator[str]:
    low, high, drop = threshold.lower_bound, threshold.upper_bound, threshold.max_drop
    if low is not None and candidate < low - ROUNDING * abs(low):
        yield f"the candidate must be at least lower_bound {low:g}"
    if high is not None and candidate > high + ROUNDING * abs(high):
        yield f"the candidate must be at most upper_bound {high:g}"
    if drop is not None and not keeps_drop(threshold, Measured(baseline, candidate)):
        yield f"the candidate may be worse than the baseline by at most max_drop {drop:g}"


def keeps_drop(threshold: Threshold, measured: Measured) -> bool:
    """Whether a loss as measured is within a threshold's max_drop; without one, or without a number, it isn't."""
    baseline, candidate, drop = measured.baseline, measured.candidate, threshold.max_drop
    if baseline is None or candidate is None or drop is None:
        return False
    worse = baseline - candidate if threshold.rises else candidate - baseline
    return worse <= drop + ROUNDING * max(abs(baseline), abs(candidate))


def _order(result: SliceResult) -> tuple[object, ...]:
    return len(result.key), [(feature, isinstance(value, str), value) for feature, value in result.key]


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None

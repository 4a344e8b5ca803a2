"""Whether the data can tell that a loss stays within its bound: the part of the verdict that a `confidence` asks for. Pure functions.

The hypothesis of each test is that the candidate loses more than max_drop; a blessing needs every one rejected. So where the
data can't tell, nothing is blessed, and the reason says how many examples would tell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tfx_edge.components.edge_validator.slices import gated_slices, matches
from tfx_edge.components.edge_validator.statistics.decisions import alpha, holm, needed_examples
from tfx_edge.components.edge_validator.verdict import Measured, SliceResult, keeps_drop
from tfx_edge.schemas import GateConfig, Threshold

Side = Literal["above", "below"]


@dataclass(frozen=True)
class _Test:
    """One max_drop in one slice."""

    threshold: Threshold
    max_drop: float
    result: SliceResult
    measured: Measured

    @property
    def bound(self) -> float:
        """What the difference must lie beyond."""
        return -self.max_drop if self.threshold.rises else self.max_drop

    @property
    def side(self) -> Side:
        """On which side of the bound."""
        return "above" if self.threshold.rises else "below"

    @property
    def p_value(self) -> float:
        """1 where nothing is known of the difference."""
        estimate = self.measured.estimate
        return 1.0 if estimate is None else estimate(1).p_value(self.bound, self.side)


def undecided(config: GateConfig, results: Sequence[SliceResult]) -> list[str]:
    """A line for each max_drop and slice that is kept as measured, but not for certain.

    Args:
        config: the gate's conditions; without a confidence nothing is undecided.
        results: the slices that occurred.
    """
    if config.confidence is None:
        return []
    tests = list(_tests(config, results))
    p_values = [test.p_value for test in tests]
    levels = holm(p_values) if config.correction == "holm" else p_values
    return [
        _line(config, config.confidence, test, len(tests))
        for test, p_value in zip(tests, levels, strict=True)
        if p_value > alpha(config.confidence) and keeps_drop(test.threshold, test.measured)
    ]


def _tests(config: GateConfig, results: Sequence[SliceResult]) -> Iterator[_Test]:
    for i, threshold in enumerate(config.thresholds):
        if threshold.max_drop is None:
            continue
        for result in results:
            if any(matches(s, result.key) for s in gated_slices(config, threshold)):
                yield _Test(threshold, threshold.max_drop, result, result.metrics[i])


def _line(config: GateConfig, confidence: float, test: _Test, tests: int) -> str:
    estimate = test.measured.estimate
    head = f"{test.threshold.title}, slice {test.result.title} ({test.result.examples} examples)"
    if estimate is None:
        return (
            f"{head}: how certain its difference is can't be told, as confidence {confidence:g} asks; "
            "take a metric that is a mean over examples, or drop the confidence"
        )
    interval = estimate(1).interval(confidence)
    span = "is unknown" if interval.low is None else f"lies within {interval.low:+.4g} to {interval.high:+.4g}"
    level = alpha(confidence) / (tests if config.correction == "holm" else 1)
    needed = needed_examples(estimate, test.result.examples, test.bound, test.side, level)
    cure = "no number of examples would decide" if needed is None else f"about {needed} examples would decide"
    corrected = f", corrected for {tests} comparisons" if config.correction == "holm" else ""
    return (
        f"{head}: undecided; the difference {span} with confidence {confidence:g}{corrected}, max_drop is "
        f"{test.max_drop:g}; {cure}, evaluate on more data or allow a larger drop"
    )

"""What a benchmark gives: ratios of two sides that were measured in turn, in one run."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: dotted, the benchmark first.
        value: the median.
        unit: of the value, for example `x import pydantic`.
        goal: what the value must reach.
        better: which side of the goal is good.
        spread: smallest and largest measured value.
        runs: how many values the median is of.
    """

    name: str
    value: float
    unit: str
    goal: float
    better: Literal["higher", "lower"]
    spread: tuple[float, float]
    runs: int

    @property
    def reached(self) -> bool:
        """Whether the value meets its goal."""
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal

    def as_json(self) -> dict[str, object]:
        """The figure as plain data, its numbers rounded to four digits."""
        rounded = {"value": float(f"{self.value:.4g}"), "spread": [float(f"{v:.4g}") for v in self.spread]}
        return {**asdict(self), **rounded}


def ratio(
    name: str,
    ours: Callable[[], object],
    other: Callable[[], object],
    *,
    unit: str,
    goal: float,
    better: Literal["higher", "lower"],
    runs: int = 5,
) -> Figure:
    """Times two calls in turn, after one of each that doesn't count.

    Args:
        name: of the figure.
        ours: the numerator.
        other: the denominator.
        unit: what the ratio is of.
        goal: what its median must reach.
        better: which side of the goal is good.
        runs: pairs, at least 5.
    """
    if runs < 5:
        raise ValueError(f"runs {runs}: a median of fewer than 5 says too little")
    seconds(ours), seconds(other)
    ratios = [seconds(ours) / seconds(other) for _ in range(runs)]
    return Figure(name, statistics.median(ratios), unit, goal, better, (min(ratios), max(ratios)), runs)


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes, by the clock on the wall."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start

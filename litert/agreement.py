"""Whether there are examples enough to calibrate on: disjoint parts of them must tell the same ranges."""

import itertools
import math
from collections.abc import Iterable, Sequence

from tfx_edge.litert.activation_statistics import Statistics
from tfx_edge.litert.range_methods import tensor_ranges
from tfx_edge.schemas.ranges import RangeConfig, TensorRanges

_HALVES = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))  # of four quarters
_HOPELESS = 100  # times as many examples


def disagreement(parts: Sequence[Statistics], config: RangeConfig, num_bits: int = 8) -> str | None:
    """Compares the ranges of halves of the data.

    Its four quarters make three pairs of halves and six pairs of quarters. How much further apart the quarters' ranges are than the
    halves' tells how fast they near each other as examples are added: gap ~ n**-b with b = log2(quarters' gap / halves' gap), from which
    follows the number at which halves would agree. (Extremes of bounded values near like 1/n, those of a normal distribution
    hardly at all; so b is measured, not assumed.)

    Args:
        parts: eight disjoint parts of the data, as a `Collector` gives them.
        config: the method, and how far apart the ends may be, as a share of the whole range's width.
        num_bits: see `tensor_ranges`.

    Returns:
        A warning of one line, about the activation whose ranges are furthest apart; None where all agree.
    """
    whole = tensor_ranges(parts, config, num_bits)
    quarters = [parts[i::4] for i in range(4)]
    if any(sum(part.examples for part in quarter) == 0 for quarter in quarters):
        return f"{whole.examples} calibration examples can't tell whether their ranges are those of the data; give a hundred or more"
    halves = [tuple(tensor_ranges([p for i in half for p in quarters[i]], config, num_bits) for half in pair) for pair in _HALVES]
    gaps = {name: _mean(_gap(a, b, whole, name) for a, b in halves) for name in whole.ranges}
    worst = max(gaps, key=lambda name: (gaps[name], name), default=None)
    if worst is None or gaps[worst] <= config.agreement:
        return None
    apart = _mean(
        _gap(a, b, whole, worst) for a, b in itertools.combinations([tensor_ranges(quarter, config, num_bits) for quarter in quarters], 2)
    )
    return (
        f"the {whole.examples} calibration examples tell the range of tensor {worst!r} poorly: those of two halves are "
        f"{gaps[worst]:.0%} of its width apart, more than {config.agreement:.0%}; "
        f"{_advice(whole.examples, gaps[worst], apart, config.agreement)}"
    )


def _advice(examples: int, gap: float, apart: float, bound: float) -> str:
    rate = math.log2(apart / gap) if apart > 0 else 0.0
    times = (gap / bound) ** (1 / rate) if rate > 0 else math.inf
    if times > _HOPELESS:
        return "more examples would hardly bring them nearer: take its range by a percentile"
    return f"about {_rounded(examples * times)} examples would do, or take its range by a percentile"


def _rounded(number: float) -> int:
    """Up, to two digits."""
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit) * unit


def _gap(a: TensorRanges, b: TensorRanges, whole: TensorRanges, name: str) -> float:
    if name not in a.ranges or name not in b.ranges:
        return 1.0
    width = whole.ranges[name].max - whole.ranges[name].min
    ends = max(abs(a.ranges[name].min - b.ranges[name].min), abs(a.ranges[name].max - b.ranges[name].max))
    return ends / width if width else 0.0


def _mean(values: Iterable[float]) -> float:
    gathered = list(values)
    return sum(gathered) / len(gathered)

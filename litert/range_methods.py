"""From what an activation took to the range that it is quantized in.

Every range lies within the true extremes, and together with 0 is what the quantizer takes: it widens a range to hold 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert.activation_statistics import Statistics, TensorStatistics, bin_edges, merge
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.ranges import RangeConfig, RangeMethod, RangeRule, TensorRange, TensorRanges

_CANDIDATES = 64  # thresholds that are tried on each side
_ROUNDS = 3  # of one side after the other
_LINEAR_BINS = 2048
_LEVELS = 128  # of one sign; a tensor that has but one sign gets twice as many
_NARROWEST = 1e-4  # of the largest magnitude: no narrower threshold is looked for

Ends = tuple[float, float]
Values = NDArray[np.float64]


def tensor_ranges(parts: Sequence[Statistics], config: RangeConfig = RangeConfig(), num_bits: int = 8) -> TensorRanges:
    """Takes the range of every activation.

    Args:
        parts: statistics of disjoint parts of the calibration data, as a `Collector` gives them.
        config: by which method.
        num_bits: 8, or 16 for integers that are symmetric around 0; what `mse` and `entropy` give up depends on it.

    Raises:
        EdgeError: a rule is about no activation, or a method's statistics weren't collected.
    """
    whole = merge(parts)
    for rule in config.rules:
        if whole.tensors and not any(config.rule(name) is rule for name in whole.tensors):
            raise EdgeError(
                f"ranges: the rule for tensor {rule.tensor!r} decides on no activation of the model; "
                "name one of ranges.json, or leave the rule out"
            )
    ranges = {name: _range(name, tensor, parts, config.rule(name), num_bits) for name, tensor in whole.tensors.items()}
    return TensorRanges(ranges=ranges, examples=whole.examples)


def _range(name: str, tensor: TensorStatistics, parts: Sequence[Statistics], rule: RangeRule, num_bits: int) -> TensorRange:
    if rule.method == "moving_average":
        low, high = _moving_average([part.tensors[name] for part in parts if name in part.tensors])
    elif rule.method == "min_max":
        low, high = tensor.low, tensor.high
    elif not len(tensor.bins):
        raise EdgeError(f"ranges: method {rule.method!r} of tensor {name!r} needs a histogram, and none was collected; run Quantizer again")
    else:
        low, high = _METHODS[rule.method](tensor, rule, num_bits)
    low, high = max(low, tensor.low), min(high, tensor.high)
    return TensorRange(min=min(low, high), max=max(low, high))


def _moving_average(parts: Sequence[TensorStatistics]) -> Ends:
    """The mean of the parts' extremes: what a moving average over batches tends to, whatever the order of the examples.

    Not of each example's extremes, as litert-quantizer's calibrator has it: those of a tensor with one value an example are its mean.
    """
    return float(np.mean([part.low for part in parts])), float(np.mean([part.high for part in parts]))


def _percentile(tensor: TensorStatistics, rule: RangeRule, num_bits: int) -> Ends:
    """As NumPy's, to the width of a bin (1/32 of the value), rounded outwards."""
    histogram = _sorted(tensor)
    below = np.cumsum(histogram.counts)
    beyond = below[-1] * (100 - rule.percentile) / 100
    first = int(np.searchsorted(below, beyond, side="right"))
    last = int(np.searchsorted(below, below[-1] - beyond, side="left"))
    return float(histogram.low[min(first, len(below) - 1)]), float(histogram.high[min(last, len(below) - 1)])


def _mse(tensor: TensorStatistics, rule: RangeRule, num_bits: int) -> Ends:
    """The range of least expected squared error: clipped values lose what lies beyond, others the rounding of a uniform step.

    One side after the other is moved, from the extremes on, as long as that helps. (The trade of clipping against rounding: Banner et
    al., "Post training 4-bit quantization of convolutional networks for rapid-deployment", NeurIPS 2019; here on the histogram.)
    """
    histogram, steps = _sorted(tensor), 2**num_bits - 1
    if num_bits > 8:
        largest = max(abs(tensor.low), abs(tensor.high))
        best = min(
            np.linspace(1, 1 / _CANDIDATES, _CANDIDATES), key=lambda share: _loss(histogram, -largest * share, largest * share, steps)
        )
        return -largest * best, largest * best
    low_high = [min(tensor.low, 0.0), max(tensor.high, 0.0)]
    shares = np.linspace(1, 1 / _CANDIDATES, _CANDIDATES)
    for _ in range(_ROUNDS):
        before = list(low_high)
        for side, extreme in ((1, max(tensor.high, 0.0)), (0, min(tensor.low, 0.0))):
            if extreme == 0:
                continue
            candidates = [(low_high[0], extreme * share) if side else (extreme * share, low_high[1]) for share in shares]
            losses = [_loss(histogram, low, high, steps) for low, high in candidates]
            low_high = list(candidates[int(np.argmin(losses))])
        if low_high == before:
            break
    return low_high[0], low_high[1]


def _loss(histogram: "_Histogram", low: float, high: float, steps: int) -> float:
    step, values = (high - low) / steps, histogram.centers
    low = step * np.round(low / step)  # 0 is one of the integers, so a range can only begin at a whole step
    high = low + step * steps
    # A bin wider than half a step holds values that are rounded up and down alike.
    rounded = np.where(histogram.widths < step / 2, (values - np.round(values / step) * step) ** 2, step**2 / 12)
    clipped = (values - np.clip(values, low, high)) ** 2
    return float((histogram.counts * np.where(clipped > 0, clipped, rounded)).sum())


def _entropy(tensor: TensorStatistics, rule: RangeRule, num_bits: int) -> Ends:
    """The threshold on the magnitudes whose quantized distribution diverges least from the true one.

    Migacz, "8-bit inference with TensorRT", GTC 2017: of each threshold the histogram up to it, with all that lies beyond in its
    last bin, against the same in as few levels as the integers have. Integers of 16 bits have more levels than the histogram bins.
    """
    largest = max(abs(tensor.low), abs(tensor.high))
    levels = _LEVELS * (2 if tensor.low >= 0 or tensor.high <= 0 else 1)
    if largest == 0 or num_bits > 8:
        return tensor.low, tensor.high
    kept = range(levels, _LINEAR_BINS + 1, levels // 8)
    limit, threshold = largest, largest
    while True:
        histogram, beyond = _linear(tensor, limit)
        threshold = limit * kept[int(np.argmin([_divergence(histogram, beyond, at, levels) for at in kept]))] / _LINEAR_BINS
        if threshold > limit * kept[0] / _LINEAR_BINS or limit < largest * _NARROWEST:
            return max(tensor.low, -threshold), min(tensor.high, threshold)
        limit = threshold  # the best is the narrowest that this grid has: a finer one looks further


def _linear(tensor: TensorStatistics, limit: float) -> tuple[Values, float]:
    """The magnitudes up to a limit in bins of equal width, and how many lie beyond. Zeros lose nothing and are left out.

    What a wider bin of the grid holds is spread over them.
    """
    histogram = _sorted(tensor)
    ends = np.sort(np.abs([histogram.low, histogram.high]), axis=0)
    counts = np.where((histogram.low <= 0) & (histogram.high >= 0), 0, histogram.counts)
    width = np.maximum(ends[1] - ends[0], ends[1] * 1e-9)  # of a single value too
    edges = np.linspace(0, limit, _LINEAR_BINS + 1)
    within = np.clip((edges[:, None] - (ends[1] - width)) / np.maximum(width, np.finfo(np.float64).tiny), 0, 1) @ counts
    return np.diff(within), float(counts.sum() - within[-1])


def _divergence(histogram: Values, beyond: float, at: int, levels: int) -> float:
    true = histogram[:at].copy()
    true[-1] += histogram[at:].sum() + beyond
    level = np.minimum(np.arange(at) * levels // at, levels - 1)
    filled = histogram[:at] > 0
    mass, holders = np.bincount(level, histogram[:at], levels), np.bincount(level, filled, levels)
    coarse = np.where(filled, (mass / np.maximum(holders, 1))[level], 0)
    if coarse.sum() == 0 or true.sum() == 0:
        return float("inf")
    p, q = true / true.sum(), coarse / coarse.sum()
    smallest = 1 / max(histogram.sum() + beyond, 1)  # a share of one value, where the coarse one has none
    q = np.maximum(q, smallest * (p > 0) * 1e-3)
    where = p > 0
    return float((p[where] * np.log(p[where] / q[where])).sum())


@dataclass(frozen=True)
class _Histogram:
    """The bins of a tensor in the order of their values, cut off at its extremes, and how many values each holds."""

    low: Values
    high: Values
    counts: Values

    @property
    def centers(self) -> Values:
        return (self.low + self.high) / 2

    @property
    def widths(self) -> Values:
        return self.high - self.low


def _sorted(tensor: TensorStatistics) -> _Histogram:
    low, high = bin_edges(tensor.bins)
    order = np.argsort(low)
    return _Histogram(np.maximum(low[order], tensor.low), np.minimum(high[order], tensor.high), tensor.counts[order].astype(np.float64))


_METHODS: Mapping[RangeMethod, Callable[[TensorStatistics, RangeRule, int], Ends]] = {
    "percentile": _percentile,
    "mse": _mse,
    "entropy": _entropy,
}

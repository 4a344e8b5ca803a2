"""Which of a gate's thresholds hold for which row of its report, and what is good or bad news by them."""

import itertools
import re
from collections.abc import Iterator

from tfx_edge.report.parts import Tone
from tfx_edge.schemas import GateConfig, MetricComparison, Slice, Threshold
from tfx_edge.schemas.metrics import higher_is_better

OVERALL = "Overall"
_FEATURES = 4  # of a slice, in whatever order they come


def better(config: GateConfig, metric: str) -> bool | None:
    """Whether a higher value of a metric is better, by its title in reports; None where nothing tells."""
    for known in config.thresholds:
        if known.title == metric:
            return known.rises
    return next((higher_is_better(known.metric) for known in config.metrics if known.title == metric), None)


def news(config: GateConfig, comparison: MetricComparison) -> Tone:
    """Whether a difference is good or bad news."""
    lost = loss(config, comparison)
    return "" if not lost else "bad" if lost > 0 else "good"


def loss(config: GateConfig, comparison: MetricComparison) -> float:
    """How much was lost; 0 where that can't be told."""
    rises = better(config, comparison.metric)
    if rises is None or not comparison.difference:
        return 0.0
    return -comparison.difference if rises else comparison.difference


def is_bounded(config: GateConfig, comparison: MetricComparison) -> bool:
    """Whether a threshold holds in this slice."""
    return any(True for _ in _thresholds(config, comparison))


def allowed_drop(config: GateConfig, comparison: MetricComparison) -> float | None:
    """The smallest max_drop that holds in this slice; None: none."""
    return min((t.max_drop for t in _thresholds(config, comparison) if t.max_drop is not None), default=None)


def _thresholds(config: GateConfig, comparison: MetricComparison) -> Iterator[Threshold]:
    for threshold in config.thresholds:
        if threshold.title != comparison.metric:
            continue
        slices = config.slices if threshold.slices is None else threshold.slices
        overall = comparison.slice == OVERALL and threshold.slices is None
        if overall or (comparison.slice != OVERALL and any(_names(s, comparison.slice) for s in slices)):
            yield threshold


def _names(slice_: Slice, title: str) -> bool:
    """Whether a report's title of a slice is one of a config's slice: its features, with the values that are given."""
    parts = [
        *(f"{re.escape(feature)}=.*" for feature in slice_.feature_keys),
        *(f"{re.escape(feature)}={re.escape(value)}" for feature, value in slice_.feature_values.items()),
    ]
    orders = itertools.permutations(parts) if len(parts) <= _FEATURES else [parts]
    return any(re.fullmatch(", ".join(order), title, re.DOTALL) for order in orders)

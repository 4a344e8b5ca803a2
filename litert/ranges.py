"""The range of every float activation of a model over one batch of examples, by true extremes.

For data that comes in many batches, from many workers, or by another method: `Collector`, `merge_parts` and `tensor_ranges`.
Ranges are taken on the float flatbuffer itself, whose tensor names are those that the quantizer works with. (litert-quantizer's own
calibrator averages over samples instead, and the range of a scalar collapses.)
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert.activations import activations
from tfx_edge.litert.collector import Collector
from tfx_edge.litert.range_methods import tensor_ranges
from tfx_edge.schemas import TensorRanges

__all__ = ["EMPTY", "RangeCollector", "activations"]

EMPTY = TensorRanges(ranges={}, examples=0)


class RangeCollector:
    """A loaded float model that gives the extremes of its activations over examples."""

    def __init__(self, model: bytes, name: str = "the float flatbuffer") -> None:
        """Loads a model; see `Collector`."""
        self._collect = Collector(model, parts=1, name=name)

    def __call__(self, features: Mapping[str, NDArray[Any]], source: str = "the calibration data") -> TensorRanges:
        """Runs the examples, `[n, ...]` each by feature name; see `Collector`."""
        return tensor_ranges(self._collect(features, source))

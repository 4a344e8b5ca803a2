"""Configs of one float flatbuffer to quantized flatbuffers: ranges are taken and corrections made once for all that share them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.activation_statistics import Statistics
from tfx_edge.litert.corrections import Corrected, correct
from tfx_edge.litert.range_methods import tensor_ranges
from tfx_edge.litert.ranges import EMPTY
from tfx_edge.litert.search.making import Maker, PreparingMaker
from tfx_edge.schemas import EdgeError, QuantizationConfig, TensorRanges

Collect = Callable[[bytes], tuple[Statistics, ...]]


@dataclass(frozen=True)
class Prepared(Corrected):
    """What a config quantizes.

    Attributes:
        statistics: that the ranges come from, in parts; none where the config needs no calibration.
    """

    statistics: tuple[Statistics, ...] = ()


class Candidates:
    """Quantizes one float flatbuffer by any config."""

    def __init__(
        self, float_model: bytes, collect: Collect | None = None, examples: Callable[[], Mapping[str, NDArray[Any]]] = dict
    ) -> None:
        """Takes a model; reads nothing yet.

        Args:
            float_model: a float flatbuffer.
            collect: the statistics of a float flatbuffer's activations over the calibration data, as a `Collector` gives them;
                None where there is no such data.
            examples: some of that data, `[n, ...]` by feature name, for corrections that learn from it and for backend `auto`.
        """
        self.float_model = float_model
        self._collect, self._examples = collect, examples
        self._statistics: dict[str, tuple[Statistics, ...]] = {}
        self._make = PreparingMaker(self._correct, lambda: self.examples)

    def __call__(self, config: QuantizationConfig) -> bytes:
        """The quantized flatbuffer, not yet loaded to see whether it loads.

        Raises:
            EdgeError: see `prepared` and `PreparingMaker`.
        """
        return self._make(config)

    def prepared(self, config: QuantizationConfig) -> Prepared:
        """What a config quantizes: the float flatbuffer after its corrections, and its ranges.

        Raises:
            EdgeError: the config needs calibration data and there is none, or the corrections can't be made.
        """
        return self._make.prepared(config)

    def statistics(self, float_model: bytes) -> tuple[Statistics, ...]:
        """Of a float flatbuffer's activations over the calibration data, in parts; collected once.

        Raises:
            EdgeError: there is no calibration data, or it doesn't fit the model.
        """
        if self._collect is None:
            raise EdgeError("the scheme needs calibration data and there is none; give Quantizer CalibrationGen's output")
        key = inspect.digest(float_model)
        if key not in self._statistics:
            self._statistics[key] = self._collect(float_model)
        return self._statistics[key]

    def _correct(self, config: QuantizationConfig) -> Prepared:
        if not config.needs_calibration:
            return Prepared(self.float_model, EMPTY, {}, ())
        collected: list[tuple[Statistics, ...]] = []

        def collect(model: bytes) -> TensorRanges:
            collected.append(self.statistics(model))
            return tensor_ranges(collected[-1], config.ranges, config.num_bits)

        def make(model: bytes, ranges: TensorRanges) -> bytes:
            return Maker(model, ranges, lambda: self.examples)(config)

        examples = self.examples if config.corrections else {}
        corrected = correct(self.float_model, config, collect, examples, make)
        return Prepared(**vars(corrected), statistics=collected[-1] if config.needs_ranges else ())

    @cached_property
    def examples(self) -> Mapping[str, NDArray[Any]]:
        """Some of the calibration data, `[n, ...]` by feature name; none where there is no such data."""
        return self._examples()

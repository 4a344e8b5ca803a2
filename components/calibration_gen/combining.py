"""Combining several collections as one."""

from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection


def combine_each(
    label: str, collections: Sequence[PCollection[Any]], combine: beam.CombineFn, *, per_key: bool = False
) -> PCollection[Any]:
    """Combines what several collections hold: `Flatten`, then `combine`, in memory for the combined values alone.

    Each is combined by itself, and what comes of it once more together, since Beam's local runners keep a flattened
    collection whole before they read on.

    Args:
        label: of the steps; unique in the pipeline.
        collections: one at least.
        combine: whose accumulators workers can exchange.
        per_key: combines the values of each key of `(key, value)` by themselves.
    """
    apply = beam.CombinePerKey if per_key else beam.CombineGlobally
    parts = [part | f"{label}[{i}]" >> apply(_Part(combine)) for i, part in enumerate(collections)]
    return parts | f"{label}Flatten" >> beam.Flatten() | f"{label}Whole" >> apply(_Whole(combine))


class _Part(beam.CombineFn):
    """A CombineFn that stops short of its output."""

    def __init__(self, combine: beam.CombineFn) -> None:
        self.combine = combine

    def create_accumulator(self) -> Any:
        return self.combine.create_accumulator()

    def add_input(self, accumulator: Any, element: Any) -> Any:
        return self.combine.add_input(accumulator, element)

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        return self.combine.merge_accumulators(accumulators)

    def compact(self, accumulator: Any) -> Any:
        return self.combine.compact(accumulator)

    def extract_output(self, accumulator: Any) -> Any:
        return self.combine.compact(accumulator)


class _Whole(_Part):
    """A CombineFn of another one's accumulators."""

    def add_input(self, accumulator: Any, element: Any) -> Any:
        return self.combine.merge_accumulators([accumulator, element])

    def extract_output(self, accumulator: Any) -> Any:
        return self.combine.extract_output(accumulator)

"""Which of the records drawn also stand in splits that are held out."""

from collections.abc import Iterable, Mapping, Sequence

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection

from tfx_edge.components.calibration_gen.bottom import record_hash
from tfx_edge.components.calibration_gen.combining import combine_each

Shared = dict[bytes, tuple[str, bytes]]
"""By hash the first split, in the order of their names, that also holds a record, and the record."""


def find_shared(
    candidates: PCollection[frozenset[bytes]], held_out: Mapping[str, Sequence[PCollection[bytes]]], seed: int
) -> PCollection[Shared]:
    """Looks the records of held-out splits up among the candidates: one `Shared`, in memory for the candidates.

    Args:
        candidates: one element, the hashes of the records drawn.
        held_out: the records of each split, in as many collections as it has sources.
        seed: of the hashes.
    """
    if not held_out:
        return candidates | "NothingHeldOut" >> beam.Map(_nothing)
    found = [
        part | f"Shared[{split}][{i}]" >> beam.FlatMap(_shared, split, seed, AsSingleton(candidates))
        for split, parts in sorted(held_out.items())
        for i, part in enumerate(parts)
    ]
    return combine_each("AllShared", found, _Merge())


def _nothing(_: frozenset[bytes]) -> Shared:
    return {}


def _shared(record: bytes, split: str, seed: int, candidates: frozenset[bytes]) -> Iterable[Shared]:
    key = record_hash(record, seed)
    if key in candidates:
        yield {key: (split, record)}


class _Merge(beam.CombineFn):
    def create_accumulator(self) -> Shared:
        return {}

    def add_input(self, shared: Shared, more: Shared) -> Shared:
        return self.merge_accumulators([shared, more])

    def merge_accumulators(self, several: Iterable[Shared]) -> Shared:
        first, *others = several
        for shared in others:
            for key, found in shared.items():
                first[key] = min(first.get(key, found), found)
        return first

    def extract_output(self, shared: Shared) -> Shared:
        return shared

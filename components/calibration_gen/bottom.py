"""The k distinct records with the smallest keyed hashes: a sample that depends on the data and the seed alone.

A record's hash says by itself whether it can be in the sample, so shards, bundles, their order and the number of workers
make no difference, and equal records, which have equal hashes, count once. (Bottom-k sketches: Cohen and Kaplan,
"Summarizing data using bottom-k sketches", PODC 2007.)
"""

import dataclasses
import hashlib
import math
from collections.abc import Iterable

import apache_beam as beam

HASH_BYTES = 16

Key = tuple[bytes, bytes]
"""What records are ordered by: the hash, then, for two records that share one, the record itself."""


def record_hash(record: bytes, seed: int) -> bytes:
    """The BLAKE2b hash of a record with the seed as its key, `HASH_BYTES` long."""
    return hashlib.blake2b(record, digest_size=HASH_BYTES, key=seed.to_bytes(8, "little")).digest()


@dataclasses.dataclass
class Bottom:
    """The smallest distinct keys seen, at most twice as many as asked for.

    Attributes:
        population: how many keys were seen in all, equal ones and those left out included.
        counts: the smallest keys, and how often each was seen. A key that is among the smallest at the end was so all the
            time, in every part of the data, so its count is exact.
        bound: keys above it can't be among the smallest.
    """

    population: int = 0
    counts: dict[Key, int] = dataclasses.field(default_factory=dict)
    bound: Key | None = None

    def add(self, key: Key, count: int, size: int) -> None:
        if self.bound is None or key <= self.bound:
            self.counts[key] = self.counts.get(key, 0) + count
            if len(self.counts) > 2 * size:
                self.trim(size)

    def trim(self, size: int) -> None:
        """Drops all but the smallest keys, and puts these in order."""
        smallest = sorted(self.counts)[:size]
        self.counts = {key: self.counts[key] for key in smallest}
        if len(smallest) == size:
            self.bound = smallest[-1]


class BottomK(beam.CombineFn):
    """Combines keys into the `Bottom` of the smallest, in order and no more than asked for; in memory for 2 k keys."""

    def __init__(self, size: int, excluded: frozenset[bytes] = frozenset()) -> None:
        """Sets the bounds.

        Args:
            size: keys to keep.
            excluded: hashes that are counted and not kept.
        """
        self.size, self.excluded = size, excluded

    def create_accumulator(self) -> Bottom:
        return Bottom()

    def add_input(self, bottom: Bottom, key: Key) -> Bottom:
        bottom.population += 1
        if key[0] not in self.excluded:
            bottom.add(key, 1, self.size)
        return bottom

    def merge_accumulators(self, bottoms: Iterable[Bottom]) -> Bottom:
        merged = Bottom()
        for bottom in bottoms:
            merged.population += bottom.population
            for key, count in bottom.counts.items():
                merged.add(key, count, self.size)
        return merged

    def compact(self, bottom: Bottom) -> Bottom:
        bottom.trim(self.size)  # before the accumulator is sent to another worker
        return bottom

    def extract_output(self, bottom: Bottom) -> Bottom:
        return self.compact(bottom)


@dataclasses.dataclass(frozen=True)
class Distinct:
    """How many distinct records there are: exact where all were kept, else an estimate with its variance."""

    count: int
    variance: float = 0.0

    def __add__(self, other: "Distinct") -> "Distinct":
        return Distinct(self.count + other.count, self.variance + other.variance)

    @property
    def error(self) -> float:
        """The relative standard error."""
        return math.sqrt(self.variance) / self.count if self.count else 0.0


def count_distinct(bottom: Bottom, size: int, excluded: frozenset[bytes] = frozenset()) -> Distinct:
    """Counts the distinct keys that a `Bottom` of at most `size` was made of, from how dense the smallest hashes lie.

    With the k-th smallest hash at the fraction u of all hashes there are about (k - 1) / u keys, with a relative standard error
    of 1 / sqrt(k - 2). (Beyer, Haas, Reinwald, Sismanis and Gemulla, "On synopses for distinct-value estimation under multiset
    operations", SIGMOD 2007.) Integer arithmetic, so the same keys give the same count everywhere.

    Args:
        bottom: what `BottomK` gave.
        size: how many keys it could keep.
        excluded: hashes that it left out; each stands for one distinct key.
    """
    kept = len(bottom.counts)
    if kept < size:
        return Distinct(kept + len(excluded))
    last = max(bottom.counts)[0]
    k = kept + sum(key < last for key in excluded)
    estimate = ((k - 1) << 8 * HASH_BYTES) // (int.from_bytes(last, "big") + 1)
    known_more = kept + len(excluded)
    if estimate >= bottom.population or k <= 2:  # there can't be more distinct keys than keys
        estimate = bottom.population if k > 2 else known_more
    estimate = max(estimate, known_more)
    return Distinct(estimate, estimate**2 / (k - 2) if k > 2 else float(estimate**2))

"""Samples that depend on the data and the seed alone: the k distinct records with the smallest keyed hashes.

A record's hash says by itself whether it can be in the sample, so shards, bundles, their order and the number of workers
make no difference, and equal records, which have equal hashes, count once. (Bottom-k sketches: Cohen and Kaplan,
"Summarizing data using bottom-k sketches", PODC 2007.)
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping

import apache_beam as beam
from apache_beam.pvalue import AsDict, AsSingleton, PCollection

from tfx_edge.components.calibration_gen.allocation import allocate
from tfx_edge.schemas import CalibrationConfig, EdgeError

HASH_BYTES = 16

Key = tuple[bytes, bytes]
"""What records are ordered by: the hash, then, for two records that share one, the record itself."""

Keyed = tuple[str, bytes]
"""A record behind the name of its stratum."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """The records drawn, by hash, and what they were drawn from."""

    records: tuple[bytes, ...]
    population: int
    strata: Mapping[str, int]


def record_hash(record: bytes, seed: int) -> bytes:
    """The BLAKE2b hash of a record with the seed as its key, `HASH_BYTES` long."""
    return hashlib.blake2b(record, digest_size=HASH_BYTES, key=seed.to_bytes(8, "little")).digest()


@dataclasses.dataclass
class Bottom:
    """The smallest distinct keys seen, at most twice as many as asked for, and how many keys were seen in all."""

    population: int = 0
    keys: set[Key] = dataclasses.field(default_factory=set)
    bound: Key | None = None  # keys above it can't be among the smallest

    def add(self, keys: Iterable[Key], size: int) -> None:
        for key in keys:
            if self.bound is None or key <= self.bound:
                self.keys.add(key)
                if len(self.keys) > 2 * size:
                    self.trim(size)

    def trim(self, size: int) -> list[Key]:
        """Drops all but the smallest keys, and returns these in order."""
        smallest = sorted(self.keys)[:size]
        self.keys = set(smallest)
        if len(smallest) == size:
            self.bound = smallest[-1]
        return smallest


class BottomK(beam.CombineFn):
    """Combines keys into `(population, smallest distinct keys in order)`, in memory for 2 k keys."""

    def __init__(self, size: int) -> None:
        self.size = size

    def create_accumulator(self) -> Bottom:
        return Bottom()

    def add_input(self, bottom: Bottom, key: Key) -> Bottom:
        bottom.population += 1
        bottom.add([key], self.size)
        return bottom

    def merge_accumulators(self, bottoms: Iterable[Bottom]) -> Bottom:
        merged = Bottom()
        for bottom in bottoms:
            merged.population += bottom.population
            merged.add(bottom.keys, self.size)
        return merged

    def compact(self, bottom: Bottom) -> Bottom:
        bottom.trim(self.size)  # before the accumulator is sent to another worker
        return bottom

    def extract_output(self, bottom: Bottom) -> tuple[int, list[Key]]:
        return bottom.population, bottom.trim(self.size)


class Uniform(beam.PTransform):
    """Draws from all records alike: a collection of `Keyed` to a collection of one `Sample`. Reads the records once.

    Raises, in a worker:
        EdgeError: there are fewer distinct records than asked for.
    """

    def __init__(self, config: CalibrationConfig) -> None:
        super().__init__()
        self.config = config

    def expand(self, records: PCollection[Keyed]) -> PCollection[Sample]:
        config = self.config
        return (
            records
            | "Hash" >> beam.Map(lambda keyed: (record_hash(keyed[1], config.seed), keyed[1])).with_output_types(Key)
            | "Smallest" >> beam.CombineGlobally(BottomK(config.num_examples))
            | "Sample" >> beam.Map(_uniform_sample, config)
        )


class Stratified(beam.PTransform):
    """Draws from each stratum its share (`allocate`): the same records read twice, as `Keyed`, to one `Sample`.

    The first reading counts each stratum and keeps its k smallest hashes, from which the hash up to which it is drawn is
    known; the second takes the records up to there. So no worker holds more than the sample's records and k hashes of
    each stratum that it sees, and no runner has to keep the records between the two.

    Raises, in a worker:
        EdgeError: there are fewer distinct records than asked for, or more strata.
    """

    def __init__(self, config: CalibrationConfig) -> None:
        super().__init__()
        self.config = config

    @beam.typehints.no_annotations  # Beam would take the annotations for type hints, and knows none for two collections
    def expand(self, readings: tuple[PCollection[Keyed], PCollection[Keyed]]) -> PCollection[Sample]:
        config = self.config
        first, second = readings
        strata = (
            first
            | "Hash" >> beam.Map(lambda keyed: (keyed[0], (record_hash(keyed[1], config.seed), b""))).with_output_types(tuple[str, Key])
            | "SmallestOfStratum" >> beam.CombinePerKey(BottomK(config.num_examples))
        )
        shares = (
            strata
            | "Sizes" >> beam.MapTuple(lambda stratum, bottom: (stratum, bottom[0], len(bottom[1])))
            | "AllSizes" >> beam.CombineGlobally(_Sizes(config.num_examples))
            | "Shares" >> beam.Map(_shares, config)
        )
        last = strata | "LastOfStratum" >> beam.Map(_last_hash, AsSingleton(shares)).with_output_types(tuple[str, bytes])
        return (
            second
            | "UpToLast" >> beam.FlatMap(_up_to_last, config.seed, AsDict(last)).with_output_types(Key)
            | "Smallest" >> beam.CombineGlobally(BottomK(config.num_examples))
            | "Sample" >> beam.Map(_stratified_sample, AsSingleton(shares))
        )


Size = tuple[str, int, int]
"""Stratum, its records, its distinct records up to the size of the sample."""


class _Sizes(beam.CombineFn):
    """Combines `Size`s into (number of strata, the sizes of all, or of `limit` of them where there are more)."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def create_accumulator(self) -> tuple[int, list[Size]]:
        return 0, []

    def add_input(self, sizes: tuple[int, list[Size]], size: Size) -> tuple[int, list[Size]]:
        return self.merge_accumulators([sizes, (1, [size])])

    def merge_accumulators(self, several: Iterable[tuple[int, list[Size]]]) -> tuple[int, list[Size]]:
        count, merged = 0, list[Size]()
        for more, sizes in several:
            count += more
            merged += sizes[: self.limit - len(merged)]
        return count, merged

    def extract_output(self, sizes: tuple[int, list[Size]]) -> tuple[int, list[Size]]:
        return sizes


def _uniform_sample(bottom: tuple[int, list[Key]], config: CalibrationConfig) -> Sample:
    population, keys = bottom
    _require_enough(population, len(keys), config)
    return Sample(tuple(record for _, record in keys), population, {})


def _shares(counted: tuple[int, list[Size]], config: CalibrationConfig) -> tuple[int, dict[str, int]]:
    """The population, and how many records each stratum gets."""
    count, sizes = counted
    if count > config.num_examples:
        raise EdgeError(
            f"stratify_by {config.stratify_by!r}: {count} different values in split {config.split!r}, more than num_examples "
            f"{config.num_examples}, which must hold a record of each; raise num_examples to {count} or more, or stratify by a feature "
            "with few values, such as the label"
        )
    population = {stratum: records for stratum, records, _ in sizes}
    distinct = {stratum: different for stratum, _, different in sizes}
    total = sum(population.values())
    _require_enough(total, sum(distinct.values()), config)
    return total, allocate(config.num_examples, population, distinct)


def _last_hash(stratum: tuple[str, tuple[int, list[Key]]], shares: tuple[int, Mapping[str, int]]) -> tuple[str, bytes]:
    name, (_, keys) = stratum
    return name, keys[shares[1][name] - 1][0]


def _up_to_last(keyed: Keyed, seed: int, last: Mapping[str, bytes]) -> Iterable[Key]:
    stratum, record = keyed
    key = record_hash(record, seed)
    if key <= last[stratum]:
        yield key, record


def _stratified_sample(bottom: tuple[int, list[Key]], shares: tuple[int, Mapping[str, int]]) -> Sample:
    return Sample(tuple(record for _, record in bottom[1]), *shares)


def _require_enough(population: int, distinct: int, config: CalibrationConfig) -> None:
    if population == 0:
        raise EdgeError(
            f"split {config.split!r}: it holds no examples, num_examples asks for {config.num_examples}; "
            "name a split that has some, or see why the component upstream wrote none"
        )
    if distinct < config.num_examples:
        raise EdgeError(
            f"num_examples {config.num_examples}: split {config.split!r} has {distinct} distinct examples ({population} with "
            f"{population - distinct} duplicates); lower num_examples to {distinct} or less, or give CalibrationGen a split with more data"
        )

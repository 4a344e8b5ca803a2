"""Draws from each stratum its share."""

import dataclasses
from collections.abc import Iterable, Mapping

import apache_beam as beam
from apache_beam.pvalue import AsDict, AsSingleton, PCollection

from tfx_edge.components.calibration_gen.allocation import allocate
from tfx_edge.components.calibration_gen.bottom import Bottom, BottomK, Distinct, Key, count_distinct, record_hash
from tfx_edge.components.calibration_gen.combining import combine_each
from tfx_edge.components.calibration_gen.overlap import Shared, find_shared
from tfx_edge.components.calibration_gen.sample import TO_DRAW, Draw, HeldOut, Keyed, Outcome, Read, Short, sample_of
from tfx_edge.schemas import EdgeError


def stratified(read: Read, held_out: HeldOut, draw: Draw) -> PCollection[Outcome]:
    """From each stratum, which `Keyed` names, its share (`allocate`) of the records with the smallest hashes.

    Reads the split twice: the first reading counts each stratum and keeps its smallest hashes, from which the hash up to which
    it is drawn is known; the second takes the records up to there. So no worker holds more than the sample's records and the
    hashes of each stratum that it sees, and no runner has to keep the records between the two.

    Raises, in a worker:
        EdgeError: there are more strata than the sample has room for.
    """
    hashed = [part | f"HashStratum[{i}]" >> beam.Map(_stratum_key, draw.config.seed) for i, part in enumerate(read("ToCount"))]
    strata = combine_each("OfStratum", hashed, BottomK(draw.size, draw.excluded), per_key=True)
    candidates = strata | "Hashes" >> beam.Map(_hashes) | "Candidates" >> beam.CombineGlobally(_Union(draw.excluded))
    shared = AsSingleton(find_shared(candidates, held_out, draw.config.seed))
    plan = (
        strata
        | "Size" >> beam.Map(_stratum, draw, shared)
        | "Sizes" >> beam.CombineGlobally(_Sizes(draw.config.num_examples))
        | "Plan" >> beam.Map(_plan, draw)
    )
    last = strata | "Last" >> beam.Map(_last_hash, draw, shared, AsSingleton(plan)).with_output_types(tuple[str, bytes])
    drawn = [
        part | f"UpToLast[{i}]" >> beam.FlatMap(_up_to_last, draw, shared, AsDict(last)).with_output_types(Key)
        for i, part in enumerate(read(TO_DRAW))
    ]
    bottom = combine_each("Smallest", drawn, BottomK(draw.config.num_examples))
    return bottom | "Sample" >> beam.Map(_sample, draw, shared, AsSingleton(candidates), AsSingleton(plan))


@dataclasses.dataclass(frozen=True)
class Stratum:
    """What is known of a stratum before records are drawn from it.

    Attributes:
        name: of the stratum.
        population: its records, duplicates included.
        drawable: its distinct records that needn't be dropped, counted up to the size of the sample.
        distinct: its distinct records.
        short: whether it may have more drawable ones than were seen.
    """

    name: str
    population: int
    drawable: int
    distinct: Distinct
    short: bool


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many records each stratum gives; or too many are in held-out splits to tell."""

    shares: Mapping[str, int]
    population: int
    distinct: Distinct
    short: bool


def _stratum_key(keyed: Keyed, seed: int) -> tuple[str, Key]:
    stratum, record = keyed
    return stratum, (record_hash(record, seed), b"")


def _hashes(stratum: tuple[str, Bottom]) -> frozenset[bytes]:
    return frozenset(key for key, _ in stratum[1].counts)


class _Union(beam.CombineFn):
    """Combines sets into one."""

    def __init__(self, start: frozenset[bytes]) -> None:
        self.start = start

    def create_accumulator(self) -> set[bytes]:
        return set(self.start)

    def add_input(self, union: set[bytes], more: Iterable[bytes]) -> set[bytes]:
        union.update(more)
        return union

    def merge_accumulators(self, several: Iterable[set[bytes]]) -> set[bytes]:
        return set[bytes]().union(*several)

    def extract_output(self, union: set[bytes]) -> frozenset[bytes]:
        return frozenset(union)


class _Sizes(beam.CombineFn):
    """Combines strata into (their number, all of them, or `limit` of them where there are more)."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def create_accumulator(self) -> tuple[int, list[Stratum]]:
        return 0, []

    def add_input(self, sizes: tuple[int, list[Stratum]], stratum: Stratum) -> tuple[int, list[Stratum]]:
        return self.merge_accumulators([sizes, (1, [stratum])])

    def merge_accumulators(self, several: Iterable[tuple[int, list[Stratum]]]) -> tuple[int, list[Stratum]]:
        count, merged = 0, list[Stratum]()
        for more, strata in several:
            count += more
            merged += strata[: self.limit - len(merged)]
        return count, merged

    def extract_output(self, sizes: tuple[int, list[Stratum]]) -> tuple[int, list[Stratum]]:
        return sizes


def _stratum(stratum: tuple[str, Bottom], draw: Draw, shared: Shared) -> Stratum:
    name, bottom = stratum
    left = len(_drawable(bottom, draw, shared))
    size = draw.config.num_examples
    full = len(bottom.counts) == draw.size
    # What was excluded before this attempt can't be told by stratum; it counts to none, so the estimate is a little low then.
    return Stratum(name, bottom.population, min(left, size), count_distinct(bottom, draw.size), full and left < size)


def _drawable(bottom: Bottom, draw: Draw, shared: Shared) -> list[bytes]:
    """The smallest hashes of a stratum that needn't be dropped, in order."""
    dropped = draw.dropped(shared)
    return sorted(key for key, _ in bottom.counts if key not in dropped)


def _plan(counted: tuple[int, list[Stratum]], draw: Draw) -> Plan:
    count, strata = counted
    config = draw.config
    if count > config.num_examples:
        raise EdgeError(
            f"stratify_by {config.stratify_by!r}: {count} different values in split {config.split!r}, more than num_examples "
            f"{config.num_examples}, which must hold a record of each; raise num_examples to {count} or more, or stratify by a feature "
            "with few values, such as the label"
        )
    there = [s for s in strata if s.drawable]
    size = min(config.num_examples, sum(s.drawable for s in there))
    shares = allocate(size, {s.name: s.population for s in there}, {s.name: s.drawable for s in there})
    distinct = sum((s.distinct for s in strata), Distinct(0))
    return Plan({s.name: shares.get(s.name, 0) for s in strata}, sum(s.population for s in strata), distinct, any(s.short for s in strata))


def _last_hash(stratum: tuple[str, Bottom], draw: Draw, shared: Shared, plan: Plan) -> tuple[str, bytes]:
    name, bottom = stratum
    share = plan.shares[name]
    return name, _drawable(bottom, draw, shared)[share - 1] if share else b""


def _up_to_last(keyed: Keyed, draw: Draw, shared: Shared, last: Mapping[str, bytes]) -> Iterable[Key]:
    stratum, record = keyed
    key = record_hash(record, draw.config.seed)
    if key <= last[stratum] and not (draw.drops and (key in shared or key in draw.excluded)):
        yield key, record


def _sample(bottom: Bottom, draw: Draw, shared: Shared, candidates: frozenset[bytes], plan: Plan) -> Outcome:
    if plan.short:
        return Short(draw.dropped(shared))
    return sample_of(bottom.counts, candidates, shared, draw, plan.population, plan.distinct, strata=plan.shares)

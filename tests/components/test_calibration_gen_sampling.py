"""The samples against plain `sorted` over a set, for every way that Beam may cut and merge the data."""

import hashlib
import pickle
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.calibration_gen.allocation import allocate
from tfx_edge.components.calibration_gen.bottom import Bottom, BottomK, Distinct, count_distinct, record_hash
from tfx_edge.components.calibration_gen.coverage import Covering, coverage
from tfx_edge.components.calibration_gen.sample import Draw, Outcome, Sample, Short
from tfx_edge.components.calibration_gen.stratified import stratified
from tfx_edge.components.calibration_gen.uniform import uniform
from tfx_edge.schemas import CalibrationConfig, EdgeError

RECORDS = st.lists(st.binary(max_size=2), max_size=60)  # short, so that many are equal


def reference(records: Iterable[bytes], size: int, seed: int = 0) -> tuple[bytes, ...]:
    """The distinct records with the smallest hashes, by sorting them all."""
    key = seed.to_bytes(8, "little")
    return tuple(sorted(set(records), key=lambda r: (hashlib.blake2b(r, digest_size=16, key=key).digest(), r))[:size])


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[tuple[bytes, bytes]], Bottom]:
    """Keys, and an accumulator in which they were combined in an order and a tree of merges of their own. Some share a hash."""
    combine = BottomK(3)
    keys: list[tuple[bytes, bytes]] = []
    bottoms = []
    for part in draw(st.lists(st.lists(st.tuples(st.sampled_from([b"g", b"h"]), st.binary(max_size=1))), min_size=1, max_size=8)):
        bottom = combine.create_accumulator()
        for key in part:
            bottom = combine.add_input(bottom, key)
        bottoms.append(combine.compact(bottom) if draw(st.booleans()) else bottom)
        keys += part
    while len(bottoms) > 1:
        count = draw(st.integers(2, len(bottoms)))
        picked = [bottoms.pop(draw(st.integers(0, len(bottoms) - 1))) for _ in range(count)]
        bottoms.append(combine.merge_accumulators(picked))
    return keys, bottoms[0]


@given(trees())
@settings(max_examples=200, deadline=None)  # a deadline fails on a busy machine
def test_any_partition_and_any_order_of_merging_gives_the_smallest_distinct_keys(tree: tuple) -> None:
    keys, bottom = tree
    found = BottomK(3).extract_output(bottom)
    assert found.population == len(keys)
    assert list(found.counts.items()) == sorted(Counter(keys).items())[:3], "in order, and with how often each was there"


@given(RECORDS)
@settings(deadline=None)
def test_an_accumulator_never_holds_more_than_twice_the_sample(records: list[bytes]) -> None:
    combine = BottomK(3)
    bottom = combine.create_accumulator()
    for record in records:
        bottom = combine.add_input(bottom, (record_hash(record, 0), record))
        assert len(bottom.counts) <= 6


Keyed = tuple[Any, bytes]


def run(
    keyed: Iterable[Keyed],
    config: CalibrationConfig,
    folder: Path,
    workers: int = 1,
    held_out: Mapping[str, Sequence[bytes]] = {},
    excluded: frozenset[bytes] = frozenset(),
) -> Outcome:
    """Draws in a pipeline of two sources, each of which is read by itself."""
    keyed = list(keyed)
    result = folder / "sample"
    draw = Draw(config, drops=bool(held_out) and config.overlap == "drop", excluded=excluded)
    arguments = ["--runner=DirectRunner", "--direct_running_mode=in_memory", f"--direct_num_workers={workers}"]
    with clean_errors(), beam.Pipeline(argv=arguments) as pipeline:

        def parts(label: str, elements: Sequence[Any]) -> list[beam.PCollection]:
            return [pipeline | f"{label}{i}" >> beam.Create(elements[i::2], reshuffle=False) for i in range(2)]

        strategy = {"uniform": uniform, "stratified": stratified, "coverage": coverage}[config.strategy]
        compared = {split: parts(split, there) for split, there in held_out.items()}
        outcome = strategy(lambda label: parts(label, keyed), compared, draw)
        outcome | beam.Map(lambda found: result.write_bytes(pickle.dumps(found)))
    found: Outcome = pickle.loads(result.read_bytes())
    return found


def by_label(size: int, seed: int = 0, **more: Any) -> CalibrationConfig:
    return CalibrationConfig(strategy="stratified", stratify_by="label", num_examples=size, seed=seed, **more)


def records(count: int) -> list[bytes]:
    return [b"record %d" % i for i in range(count)]


def test_a_uniform_sample_is_the_smallest_hashes_of_the_distinct_records(tmp_path: Path) -> None:
    population = records(300) * 2 + records(20) * 5
    sample = run([("", r) for r in population], CalibrationConfig(num_examples=50, seed=7), tmp_path)
    expected = reference(population, 50, seed=7)
    seen = [population.count(record) for record in expected]
    assert (sample.records, sample.population) == (expected, len(population))
    assert (sample.repeated, sample.copies) == (50, sum(seen) - 50)
    assert max(seen) == 7, "some of the records that are there seven times are in the sample"


@pytest.mark.parametrize("config", [CalibrationConfig(num_examples=20), by_label(20)], ids=lambda c: c.strategy)
def test_order_and_workers_make_no_difference_and_the_seed_does(config: CalibrationConfig, tmp_path: Path) -> None:
    keyed = [(f"label {i % 3 % 2}", r) for i, r in enumerate(records(200))]
    shuffled = Random(1).sample(keyed, len(keyed))
    sample = run(keyed, config, tmp_path)
    assert run(shuffled, config, tmp_path, workers=3) == sample
    assert set(run(keyed, config.model_copy(update={"seed": 1}), tmp_path).records) != set(sample.records)


def test_a_stratified_sample_has_the_smallest_hashes_of_each_stratum_ordered_by_hash(tmp_path: Path) -> None:
    strata = {"common": records(400), "rare": [b"rare %d" % i for i in range(9)], "repeated": [b"one", b"two"] * 150}
    size = 40
    sample = run([(s, r) for s, found in strata.items() for r in found], by_label(size, seed=3), tmp_path)
    shares = allocate(size, {s: len(r) for s, r in strata.items()}, {s: len(set(r)) for s, r in strata.items()})
    drawn = [r for s, found in strata.items() for r in reference(found, shares[s], seed=3)]
    assert (sample.records, sample.population, sample.strata) == (reference(drawn, size, seed=3), 709, shares)
    assert (sample.repeated, sample.copies) == (2, 298)
    assert shares["repeated"] == 2
    assert Counter(r.split()[0] for r in sample.records)[b"rare"] == shares["rare"] >= 1


@pytest.mark.parametrize("config", [CalibrationConfig(num_examples=11), by_label(11)], ids=lambda c: c.strategy)
def test_fewer_distinct_records_than_asked_for_are_all_taken(config: CalibrationConfig, tmp_path: Path) -> None:
    keyed = [("a", r) for r in records(4) * 30] + [("b", b"other %d" % i) for i in range(6)]
    sample = run(keyed, config, tmp_path)
    assert set(sample.records) == {r for _, r in keyed}
    assert sample.distinct == Distinct(10)


@pytest.mark.parametrize("config", [CalibrationConfig(num_examples=10), by_label(10)], ids=lambda c: c.strategy)
def test_exactly_as_many_distinct_records_as_asked_for_are_all_taken(config: CalibrationConfig, tmp_path: Path) -> None:
    keyed = [("a", r) for r in records(4) * 30] + [("b", b"other %d" % i) for i in range(6)]
    assert set(run(keyed, config, tmp_path).records) == {r for _, r in keyed}


@pytest.mark.parametrize("config", [CalibrationConfig(), by_label(200)], ids=lambda c: c.strategy)
def test_of_no_records_at_all_none_are_taken(config: CalibrationConfig, tmp_path: Path) -> None:
    sample = run([], config, tmp_path)
    assert (sample.records, sample.population) == ((), 0)


def test_more_strata_than_the_sample_has_room_for_is_an_error_that_says_how_many(tmp_path: Path) -> None:
    keyed = [(f"{i / 7}", r) for i, r in enumerate(records(50))]
    with pytest.raises(EdgeError, match="stratify_by 'label': 50 different values in split 'train', more than num_examples 20"):
        run(keyed, by_label(20), tmp_path)


# Coverage


@st.composite
def scored(draw: st.DrawFn) -> list[list[tuple[np.ndarray, tuple[bytes, bytes]]]]:
    """Parts of a collection of records, each with two scores of few values, so that many are equal."""
    known: dict[tuple[bytes, bytes], np.ndarray] = {}
    parts = draw(st.lists(st.lists(st.binary(min_size=1, max_size=1)), min_size=1, max_size=5))
    for record in sorted({r for part in parts for r in part}):
        known[record_hash(record, 0), record] = np.array(draw(st.tuples(st.integers(0, 3), st.integers(0, 3))), np.float64)
    return [[(known[record_hash(r, 0), r], (record_hash(r, 0), r)) for r in part] for part in parts]


@given(scored(), st.randoms())
@settings(max_examples=200, deadline=None)
def test_any_partition_gives_the_record_of_the_largest_score_and_of_equal_ones_that_of_the_smallest_hash(
    parts: list, random: Random
) -> None:
    combine, covers = Covering(2), []
    for part in parts:
        cover = combine.create_accumulator()
        for element in part:
            cover = combine.add_input(cover, element)
        covers.append(combine.compact(cover) if random.random() < 0.5 else cover)
    random.shuffle(covers)
    cover = combine.extract_output(combine.merge_accumulators(covers))
    elements = [element for part in parts for element in part]
    assert cover.bottom == combine.smallest.extract_output(Bottom(len(elements), Counter(key for _, key in elements)))
    for i in range(2 if elements else 0):
        best, key = min((-scores[i], key) for scores, key in elements)
        assert (cover.best[i], cover.keys[i], cover.counts[i]) == (-best, key, sum(k == key for _, k in elements))


def test_a_covering_sample_has_the_extremes_and_the_smallest_hashes_of_the_others(tmp_path: Path) -> None:
    values = {r: float(v) for r, v in zip(records(300), np.random.default_rng(0).normal(size=300), strict=True)}
    keyed = [(np.array([-v, v]), r) for r, v in values.items()] + [(np.array([0.0, 0.0]), b"again")] * 5
    sample = run(keyed, CalibrationConfig(strategy="coverage", num_examples=20), tmp_path)
    extremes = {min(values, key=values.__getitem__), max(values, key=values.__getitem__)}
    rest = reference((r for _, r in keyed if r not in extremes), 18)
    assert sample.records == reference({*extremes, *rest}, 20)
    assert (sample.extremes, sample.population) == (2, 305)


# Held-out splits


def configs(size: int, **more: Any) -> list[CalibrationConfig]:
    return [
        CalibrationConfig(num_examples=size, **more),
        by_label(size, **more),
        CalibrationConfig(strategy="coverage", num_examples=size, **more),
    ]


def keyed_by(config: CalibrationConfig, population: Iterable[bytes]) -> list[Keyed]:
    """Records keyed as a strategy wants them: strata and values follow from the record."""
    numbers = [(int(r.split()[1]), r) for r in population]
    if config.strategy == "coverage":
        return [(np.array([-n, n], np.float64), r) for n, r in numbers]
    return [(f"label {n % 3}", r) for n, r in numbers]


@pytest.mark.parametrize("config", configs(20), ids=lambda c: c.strategy)
def test_the_sample_is_that_of_the_split_without_what_is_held_out(config: CalibrationConfig, tmp_path: Path) -> None:
    population = records(300)
    first = run(keyed_by(config, population), config, tmp_path).records
    held_out = {"eval": [*first[1:4], b"record 1000"], "test": [first[3], *population[150:170]]}
    there = {*held_out["eval"], *held_out["test"]}
    kept = run(keyed_by(config, population), config, tmp_path, held_out=held_out)
    if isinstance(kept, Short):  # an extreme is held out: drawn again without what is known by now
        kept = run(keyed_by(config, population), config, tmp_path, held_out=held_out, excluded=kept.hashes)
    assert isinstance(kept, Sample) and len(kept.records) == 20
    without = run(keyed_by(config, [r for r in population if r not in there]), config, tmp_path)
    if config.strategy == "stratified":  # whose shares go by the strata's sizes in the split
        assert not set(kept.records) & there and set(first) - there <= set(kept.records)
    else:
        assert kept.records == without.records
    assert kept.population == 300
    assert kept.checked >= 40
    assert {record for _, record in kept.shared.values()} >= set(first[1:4])
    assert {record for _, record in kept.shared.values()} <= there
    assert all(split == ("eval" if record in held_out["eval"] else "test") for split, record in kept.shared.values())
    assert all(key == record_hash(record, 0) for key, (_, record) in kept.shared.items())


@pytest.mark.parametrize("config", configs(20, overlap="warn"), ids=lambda c: c.strategy)
def test_a_sample_that_may_hold_them_is_the_same_with_and_without_held_out_records_and_names_its_own(
    config: CalibrationConfig, tmp_path: Path
) -> None:
    keyed = keyed_by(config, records(300))
    plain = run(keyed, config, tmp_path)
    others = [r for r in records(300) if r not in plain.records]
    sample = run(keyed, config, tmp_path, held_out={"eval": [*plain.records[5:8], *others]})
    assert sample.records == plain.records
    assert (sample.checked, [record for _, record in sample.shared.values()]) == (20, list(plain.records[5:8]))


@pytest.mark.parametrize("config", configs(20), ids=lambda c: c.strategy)
def test_where_too_much_is_held_out_more_is_drawn_until_the_sample_is_full(config: CalibrationConfig, tmp_path: Path) -> None:
    population = records(160)
    free = population[::3] if config.strategy != "coverage" else population[2:-2]  # the extremes and the ones beside them are held out
    held_out = {"eval": [r for r in population if r not in free]}
    attempts, outcome = 0, Short(frozenset())
    while isinstance(outcome, Short):
        attempts += 1
        known = outcome.hashes
        outcome = run(keyed_by(config, population), config, tmp_path, held_out=held_out, excluded=known)
        assert isinstance(outcome, Sample) or outcome.hashes > known
    assert attempts > 1
    assert len(outcome.records) == 20 and set(outcome.records) <= set(free)


# Counting


@given(st.integers(1, 40), st.integers(3, 40), st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_distinct_records_are_counted_exactly_while_all_are_kept(distinct: int, size: int, copies: int) -> None:
    combine = BottomK(size)
    bottom = combine.create_accumulator()
    for record in records(distinct) * copies:
        bottom = combine.add_input(bottom, (record_hash(record, 0), b""))
    found = count_distinct(combine.extract_output(bottom), size)
    if distinct < size:
        assert found == Distinct(distinct)
    assert distinct if distinct <= size else size <= found.count <= distinct * copies


def test_more_distinct_records_are_estimated_within_the_error_that_is_given() -> None:
    size, off = 400, []
    for seed in range(30):
        combine = BottomK(size)
        bottom = combine.create_accumulator()
        for record in records(5000):
            bottom = combine.add_input(bottom, (record_hash(record, seed), b""))
        bottom.population *= 3  # as if each were there three times
        found = count_distinct(combine.extract_output(bottom), size)
        assert found.error == pytest.approx(398**-0.5)
        off.append((found.count / 5000 - 1) / found.error)
    assert 0.7 < np.std(off) < 1.4, "of errors in units of the standard error"
    assert abs(np.mean(off)) < 3 / 30**0.5


def test_what_was_excluded_counts_as_distinct() -> None:
    size = 100
    hashes = sorted(record_hash(record, 0) for record in records(5000))
    whole, part = Bottom(10**6), Bottom(10**6)
    excluded = frozenset(hashes[:120:2])
    for key in hashes:
        whole.add((key, b""), 1, size)
        if key not in excluded:
            part.add((key, b""), 1, size)
    whole.trim(size)
    part.trim(size)
    found = count_distinct(part, size, excluded)
    assert found.count == pytest.approx(5000, rel=4 * found.error)
    assert count_distinct(part, size).count < found.count

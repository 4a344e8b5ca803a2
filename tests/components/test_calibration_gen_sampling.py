"""The samples against plain `sorted` over a set, for every way that Beam may cut and merge the data."""

import hashlib
import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import apache_beam as beam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.calibration_gen.allocation import allocate
from tfx_edge.components.calibration_gen.sampling import Bottom, BottomK, Keyed, Sample, Stratified, Uniform, record_hash
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
    assert BottomK(3).extract_output(bottom) == (len(keys), sorted(set(keys))[:3])


@given(RECORDS)
@settings(deadline=None)
def test_an_accumulator_never_holds_more_than_twice_the_sample(records: list[bytes]) -> None:
    combine = BottomK(3)
    bottom = combine.create_accumulator()
    for record in records:
        bottom = combine.add_input(bottom, (record_hash(record, 0), record))
        assert len(bottom.keys) <= 6


def run(keyed: Iterable[Keyed], config: CalibrationConfig, folder: Path, workers: int = 1, mode: str = "in_memory") -> Sample:
    """Samples in a pipeline of two shards."""
    keyed = list(keyed)
    result = folder / "sample"
    arguments = ["--runner=DirectRunner", f"--direct_running_mode={mode}", f"--direct_num_workers={workers}"]
    with clean_errors(), beam.Pipeline(argv=arguments) as pipeline:

        def read(label: str) -> beam.PCollection[Keyed]:
            shards = [pipeline | f"{label}{i}" >> beam.Create(keyed[i::2], reshuffle=False) for i in range(2)]
            return shards | label >> beam.Flatten()

        uniform = config.strategy == "uniform"
        samples = read("Read") | Uniform(config) if uniform else (read("First"), read("Second")) | Stratified(config)
        samples | beam.Map(lambda sample: result.write_bytes(pickle.dumps(sample)))
    sample: Sample = pickle.loads(result.read_bytes())
    return sample


def stratified(size: int, seed: int = 0) -> CalibrationConfig:
    return CalibrationConfig(strategy="stratified", stratify_by="label", num_examples=size, seed=seed)


def records(count: int) -> list[bytes]:
    return [b"record %d" % i for i in range(count)]


def test_a_uniform_sample_is_the_smallest_hashes_of_the_distinct_records(tmp_path: Path) -> None:
    population = records(300) * 2 + records(20) * 5
    sample = run([("", r) for r in population], CalibrationConfig(num_examples=50, seed=7), tmp_path)
    assert sample == Sample(reference(population, 50, seed=7), len(population), {})


@pytest.mark.parametrize("config", [CalibrationConfig(num_examples=20), stratified(20)], ids=lambda c: c.strategy)
def test_order_and_workers_make_no_difference_and_the_seed_does(config: CalibrationConfig, tmp_path: Path) -> None:
    keyed = [(f"label {i % 3 % 2}", r) for i, r in enumerate(records(200))]
    shuffled = Random(1).sample(keyed, len(keyed))
    sample = run(keyed, config, tmp_path)
    assert run(shuffled, config, tmp_path, workers=3) == sample
    assert set(run(keyed, config.model_copy(update={"seed": 1}), tmp_path).records) != set(sample.records)


def test_worker_processes_make_no_difference(tmp_path: Path) -> None:
    keyed = [(f"label {i % 3}", r) for i, r in enumerate(records(50))]
    assert run(keyed, stratified(20), tmp_path, workers=2, mode="multi_processing") == run(keyed, stratified(20), tmp_path)


def test_a_stratified_sample_has_the_smallest_hashes_of_each_stratum_ordered_by_hash(tmp_path: Path) -> None:
    strata = {"common": records(400), "rare": [b"rare %d" % i for i in range(9)], "repeated": [b"one", b"two"] * 150}
    size = 40
    sample = run([(s, r) for s, found in strata.items() for r in found], stratified(size, seed=3), tmp_path)
    shares = allocate(size, {s: len(r) for s, r in strata.items()}, {s: len(set(r)) for s, r in strata.items()})
    drawn = [r for s, found in strata.items() for r in reference(found, shares[s], seed=3)]
    assert sample == Sample(reference(drawn, size, seed=3), 709, shares)
    assert shares["repeated"] == 2
    assert Counter(r.split()[0] for r in sample.records)[b"rare"] == shares["rare"] >= 1


@pytest.mark.parametrize("config", [CalibrationConfig(num_examples=11), stratified(11)], ids=lambda c: c.strategy)
def test_fewer_distinct_records_than_asked_for_is_an_error_that_counts_the_duplicates(config: CalibrationConfig, tmp_path: Path) -> None:
    keyed = [("a", r) for r in records(4) * 30] + [("b", b"other %d" % i) for i in range(6)]
    with pytest.raises(EdgeError) as caught:
        run(keyed, config, tmp_path)
    assert str(caught.value) == (
        "num_examples 11: split 'train' has 10 distinct examples (126 with 116 duplicates); lower num_examples to 10 or less, "
        "or give CalibrationGen a split with more data"
    )


@pytest.mark.parametrize("config", [CalibrationConfig(num_examples=10), stratified(10)], ids=lambda c: c.strategy)
def test_exactly_as_many_distinct_records_as_asked_for_are_all_taken(config: CalibrationConfig, tmp_path: Path) -> None:
    keyed = [("a", r) for r in records(4) * 30] + [("b", b"other %d" % i) for i in range(6)]
    assert set(run(keyed, config, tmp_path).records) == {r for _, r in keyed}


@pytest.mark.parametrize("config", [CalibrationConfig(), stratified(200)], ids=lambda c: c.strategy)
def test_no_records_at_all_is_an_error(config: CalibrationConfig, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="split 'train': it holds no examples, num_examples asks for 200; name a split"):
        run([], config, tmp_path)


def test_more_strata_than_the_sample_has_room_for_is_an_error_that_says_how_many(tmp_path: Path) -> None:
    keyed = [(f"{i / 7}", r) for i, r in enumerate(records(50))]
    with pytest.raises(EdgeError, match="stratify_by 'label': 50 different values in split 'train', more than num_examples 20"):
        run(keyed, stratified(20), tmp_path)

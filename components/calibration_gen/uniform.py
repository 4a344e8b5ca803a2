"""Draws from all records alike."""

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection

from tfx_edge.components.calibration_gen.bottom import Bottom, BottomK, Key, count_distinct, record_hash
from tfx_edge.components.calibration_gen.combining import combine_each
from tfx_edge.components.calibration_gen.overlap import Shared, find_shared
from tfx_edge.components.calibration_gen.sample import TO_DRAW, Draw, HeldOut, Keyed, Outcome, Read, Short, sample_of


def uniform(read: Read, held_out: HeldOut, draw: Draw) -> PCollection[Outcome]:
    """The records with the smallest hashes; reads the split once."""
    keys = [part | f"Hash[{i}]" >> beam.Map(_key, draw.config.seed) for i, part in enumerate(read(TO_DRAW))]
    bottom = combine_each("Smallest", keys, BottomK(draw.size, draw.excluded))
    candidates = bottom | "Candidates" >> beam.Map(_hashes, draw.excluded)
    shared = find_shared(candidates, held_out, draw.config.seed)
    return bottom | "Sample" >> beam.Map(_sample, draw, AsSingleton(shared))


def _key(keyed: Keyed, seed: int) -> Key:
    return record_hash(keyed[1], seed), keyed[1]


def _hashes(bottom: Bottom, excluded: frozenset[bytes]) -> frozenset[bytes]:
    return excluded.union(key for key, _ in bottom.counts)


def _sample(bottom: Bottom, draw: Draw, shared: Shared) -> Outcome:
    dropped, size = draw.dropped(shared), draw.config.num_examples
    left = [key for key in bottom.counts if key[0] not in dropped]
    if len(left) < size and len(bottom.counts) == draw.size:
        return Short(dropped)
    kept = {key: bottom.counts[key] for key in left[:size]}
    checked = [key for key, _ in bottom.counts]
    return sample_of(kept, checked, shared, draw, bottom.population, count_distinct(bottom, draw.size, draw.excluded))

"""Draws the records that set the features' extremes, and the rest from all records alike.

A range that misses the largest value of a feature clips it on the device; a uniform sample of n records misses the largest of N
with probability 1 - n/N.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import AsSingleton, PCollection
from numpy.typing import NDArray

from tfx_edge.components.calibration_gen.bottom import Bottom, BottomK, Key, count_distinct, record_hash
from tfx_edge.components.calibration_gen.combining import combine_each
from tfx_edge.components.calibration_gen.overlap import Shared, find_shared
from tfx_edge.components.calibration_gen.records import DenseFeature
from tfx_edge.components.calibration_gen.sample import TO_DRAW, Draw, HeldOut, Keyed, Outcome, Read, Short, sample_of
from tfx_edge.schemas import CalibrationConfig, EdgeError

Scores = NDArray[np.float64]
"""Of one record: what each extreme is the largest of."""


@dataclasses.dataclass(frozen=True)
class Extremes:
    """Which extremes are kept: the smallest and the largest value of each feature, of some also of each element."""

    features: tuple[DenseFeature, ...]
    by_element: frozenset[str]

    @property
    def count(self) -> int:
        """How many extremes there are; one record may set several."""
        return sum(2 * (feature.size if feature.name in self.by_element else 1) for feature in self.features)

    def scores(self, values: Mapping[str, Any]) -> Scores:
        """How far a record goes towards each extreme.

        Args:
            values: the record's values of each feature, by name.
        """
        parts: list[Any] = []
        for feature in self.features:
            array = np.asarray(values[feature.name], np.float64)
            if feature.name in self.by_element:
                parts += [-array, array]
            else:
                parts += [[-array.min()], [array.max()]]
        return np.concatenate(parts)


def plan_extremes(dense: Iterable[DenseFeature], config: CalibrationConfig) -> Extremes:
    """Chooses the extremes to keep, by the schema alone.

    Those of each numeric dense feature, and of the features with the fewest elements each element's, as long as the extremes
    are no more than half the sample.

    Raises:
        EdgeError: there are none, or the sample has no room for two records a feature.
    """
    numeric = sorted((feature for feature in dense if feature.numeric and feature.size), key=lambda f: (f.size, f.name))
    if not numeric:
        raise EdgeError("strategy 'coverage': the schema has no numeric dense feature, so no extremes; take strategy 'uniform'")
    extremes = Extremes(tuple(numeric), frozenset())
    if extremes.count > config.num_examples:
        raise EdgeError(
            f"num_examples {config.num_examples}: strategy 'coverage' keeps up to 2 examples for each of {len(numeric)} numeric features; "
            f"raise num_examples to {extremes.count} or more, or take strategy 'uniform'"
        )
    for feature in numeric:
        more = Extremes(extremes.features, extremes.by_element | {feature.name})
        if more.count > config.num_examples // 2:
            break
        extremes = more
    return extremes


def coverage(read: Read, held_out: HeldOut, draw: Draw) -> PCollection[Outcome]:
    """The records that set the extremes, and those with the smallest hashes; `Keyed` holds `Scores`. Reads the split once."""
    keyed = [part | f"Hash[{i}]" >> beam.Map(_scored, draw.config.seed) for i, part in enumerate(read(TO_DRAW))]
    cover = combine_each("Smallest", keyed, Covering(draw.size, draw.excluded))
    candidates = cover | "Candidates" >> beam.Map(_hashes, draw.excluded)
    shared = find_shared(candidates, held_out, draw.config.seed)
    return cover | "Sample" >> beam.Map(_sample, draw, AsSingleton(shared))


Scored = tuple[Scores, Key]


def _scored(keyed: Keyed, seed: int) -> Scored:
    scores, record = keyed
    return scores, (record_hash(record, seed), record)


@dataclasses.dataclass
class Cover:
    """The smallest keys, and of each extreme the largest score, the key that has it and how often that was seen.

    Of several records with the same score the smallest key counts, so it makes no difference in which order they come.
    """

    bottom: Bottom = dataclasses.field(default_factory=Bottom)
    best: Scores | None = None
    keys: list[Key] = dataclasses.field(default_factory=list)
    counts: list[int] = dataclasses.field(default_factory=list)

    def reach(self, scores: Scores, keys: list[Key], counts: list[int]) -> None:
        """Takes up scores, each with its key and count."""
        if self.best is None:
            self.best, self.keys, self.counts = scores.copy(), list(keys), list(counts)
            return
        for i in np.flatnonzero(scores >= self.best):
            if scores[i] > self.best[i] or keys[i] < self.keys[i]:
                self.best[i], self.keys[i], self.counts[i] = scores[i], keys[i], counts[i]
            elif keys[i] == self.keys[i]:
                self.counts[i] += counts[i]


class Covering(beam.CombineFn):
    """Combines `Scored` into a `Cover`, in memory for 2 k keys and one for each extreme."""

    def __init__(self, size: int, excluded: frozenset[bytes] = frozenset()) -> None:
        """Sets the bounds, as for `BottomK`."""
        self.smallest = BottomK(size, excluded)

    def create_accumulator(self) -> Cover:
        return Cover()

    def add_input(self, cover: Cover, scored: Scored) -> Cover:
        scores, key = scored
        cover.bottom = self.smallest.add_input(cover.bottom, key)
        if key[0] not in self.smallest.excluded:
            cover.reach(scores, [key] * len(scores), [1] * len(scores))
        return cover

    def merge_accumulators(self, covers: Iterable[Cover]) -> Cover:
        covers = list(covers)
        merged = Cover(self.smallest.merge_accumulators(cover.bottom for cover in covers))
        for cover in covers:
            if cover.best is not None:
                merged.reach(cover.best, cover.keys, cover.counts)
        return merged

    def compact(self, cover: Cover) -> Cover:
        cover.bottom = self.smallest.compact(cover.bottom)
        return cover

    def extract_output(self, cover: Cover) -> Cover:
        return self.compact(cover)


def _hashes(cover: Cover, excluded: frozenset[bytes]) -> frozenset[bytes]:
    return excluded.union((key for key, _ in cover.bottom.counts), (key for key, _ in cover.keys))


def _sample(cover: Cover, draw: Draw, shared: Shared) -> Outcome:
    dropped, size, bottom = draw.dropped(shared), draw.config.num_examples, cover.bottom
    extremes = dict(zip(cover.keys, cover.counts, strict=True))
    rest = [key for key in bottom.counts if key[0] not in dropped and key not in extremes]
    few = len(extremes) + len(rest) < size and len(bottom.counts) == draw.size
    if few or any(key[0] in dropped for key in extremes):
        return Short(dropped)
    kept = {**extremes, **{key: bottom.counts[key] for key in rest[: size - len(extremes)]}}
    distinct = count_distinct(bottom, draw.size, draw.excluded)
    return sample_of(kept, _hashes(cover, draw.excluded), shared, draw, bottom.population, distinct, extremes=len(extremes))

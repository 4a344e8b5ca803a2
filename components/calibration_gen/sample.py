"""What the strategies have in common: what is asked for, and what comes of it."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from apache_beam.pvalue import PCollection

from tfx_edge.components.calibration_gen.bottom import Distinct, Key
from tfx_edge.components.calibration_gen.overlap import Shared
from tfx_edge.schemas import CalibrationConfig

TO_DRAW = "ToDraw"
"""What every strategy calls the reading that it draws from."""

Keyed = tuple[Any, bytes]
"""A record behind what its strategy goes by: nothing, the name of its stratum, or the values of its features."""

Read = Callable[[str], Sequence[PCollection[Keyed]]]
"""Reads the split once more, into a collection for each source; the argument sets the steps' labels apart."""

HeldOut = Mapping[str, Sequence[PCollection[bytes]]]
"""The records of each held-out split, a collection for each source."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """One attempt at a sample.

    Attributes:
        config: what is asked for.
        drops: whether records that are also in a held-out split are dropped.
        excluded: hashes of such records, known from the attempts before.
    """

    config: CalibrationConfig
    drops: bool = False
    excluded: frozenset[bytes] = frozenset()

    @property
    def size(self) -> int:
        """Records to draw: twice the sample where some may have to be dropped."""
        return self.config.num_examples * (2 if self.drops else 1)

    def dropped(self, shared: Shared) -> frozenset[bytes]:
        """Hashes of the records that the sample must not hold."""
        return frozenset(shared) if self.drops else frozenset()


@dataclasses.dataclass(frozen=True)
class Sample:
    """The records drawn, and what they were drawn from.

    Attributes:
        records: ordered by hash; fewer than asked for where the split has no more.
        population: records that could be drawn, duplicates included.
        repeated: how many of the sample's records the population holds more than once.
        copies: how many times more than once, in all.
        distinct: distinct records of the population.
        strata: stratified: the sample's records by stratum.
        extremes: coverage: the sample's records that set a feature's extreme.
        checked: records that were looked up in the held-out splits.
        shared: those of them that were found there; in the sample too, unless they are dropped.
    """

    records: tuple[bytes, ...]
    population: int
    repeated: int
    copies: int
    distinct: Distinct
    strata: Mapping[str, int] = dataclasses.field(default_factory=dict)
    extremes: int = 0
    checked: int = 0
    shared: Shared = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Short:
    """Too many of the records drawn are in held-out splits: draw again without the ones with these hashes."""

    hashes: frozenset[bytes]


Outcome = Sample | Short


def sample_of(
    keys: Mapping[Key, int], checked: Iterable[bytes], shared: Shared, draw: Draw, population: int, distinct: Distinct, **more: Any
) -> Sample:
    """Makes a sample of its keys, with how often each was seen.

    Args:
        keys: the sample's, in any order.
        checked: hashes of the records that were looked up in held-out splits.
        shared: those found there.
        draw: what was asked for.
        population: of the `Sample`.
        distinct: of the `Sample`.
        more: other attributes of the `Sample`.
    """
    looked_up = draw.excluded.union(checked) if draw.drops else {key for key, _ in keys}
    return Sample(
        records=tuple(record for _, record in sorted(keys)),
        population=population,
        repeated=sum(count > 1 for count in keys.values()),
        copies=sum(count - 1 for count in keys.values()),
        distinct=distinct,
        checked=len(looked_up),
        shared={key: found for key, found in sorted(shared.items()) if key in looked_up},
        **more,
    )

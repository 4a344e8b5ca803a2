import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from plain_verdict import plain_verdicts

from benchmarks.mutations import Judged, Setting, compare, setting

POOL = range(100)
# Most are of the file itself, which gives a gate the most to trip over.
WANTED = {"none": 4, "accuracy": 4, "file": 8}
# Each needs a check of its own: an operator that isn't there, a write to a constant, a runtime version that is none.
TRICKY = (307, 499, 967)


@pytest.fixture(scope="module")
def shared() -> Setting:
    return setting()


@pytest.fixture(scope="module")
def judged(shared: Setting) -> list[Judged]:
    verdicts = plain_verdicts([shared.damaged(seed)[1] for seed in POOL], shared.task)
    by_consequence: dict[str, list[int]] = {consequence: [] for consequence in WANTED}
    for seed, verdict in zip(POOL, verdicts, strict=True):
        by_consequence[_consequence(verdict)].append(seed)
    seeds = [seed for consequence, count in WANTED.items() for seed in by_consequence[consequence][:count]]
    return compare(shared, [*seeds, *TRICKY], workers=1)


def test_the_gate_judges_damaged_models_as_a_plain_loop_does(judged: list[Judged]) -> None:
    assert [j for j in judged if j.failed or j.wrongly_blessed or j.wrongly_refused] == []


def test_damages_of_every_consequence_are_among_them(judged: list[Judged]) -> None:
    found = Counter(_consequence(j.plain) for j in judged)  # what the tricky ones come to depends on the converter's version
    assert all(found[consequence] >= count for consequence, count in WANTED.items())


def test_sound_models_pass_the_plain_loop_whatever_is_tried_between(shared: Setting) -> None:
    candidates = [*shared.models.values(), b"", *shared.models.values()]
    verdicts = plain_verdicts(candidates, shared.task)
    assert [v is None for v in verdicts] == [True] * 3 + [False] + [True] * 3


def _consequence(plain: str | None) -> str:
    """Of a damage: too small to matter, on the accuracy, or that the file can't be judged by it."""
    return "none" if plain is None else "accuracy" if "accuracy" in plain else "file"

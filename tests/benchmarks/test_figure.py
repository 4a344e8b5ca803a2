import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
from benchmarks.figure import Figure, ratio


def figure(value: float, better: str) -> Figure:
    return Figure("name", value, "x", 2.0, better, (value, value), 5)


def test_a_goal_is_reached_on_its_good_side_and_on_it() -> None:
    assert figure(2.0, "higher").reached and figure(2.0, "lower").reached
    assert figure(3.0, "higher").reached and not figure(3.0, "lower").reached
    assert figure(1.0, "lower").reached and not figure(1.0, "higher").reached


def test_both_sides_run_in_turn_after_a_round_that_does_not_count() -> None:
    calls = []
    measured = ratio("n", lambda: calls.append("a"), lambda: calls.append("b"), unit="x", goal=1, better="lower", runs=6)
    assert calls == ["a", "b"] * 7
    assert measured.runs == 6
    assert measured.spread[0] <= measured.value <= measured.spread[1]


def test_the_value_is_ours_over_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def taking(duration: float) -> None:
        clock[0] += duration

    measured = ratio("n", lambda: taking(3.0), lambda: taking(2.0), unit="x", goal=1, better="lower")
    assert measured.value == pytest.approx(1.5)


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 5"):
        ratio("n", lambda: None, lambda: None, unit="x", goal=1, better="lower", runs=4)

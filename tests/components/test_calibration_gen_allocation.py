"""Properties of the shares, and an independent way to the exact ones: bisection for the factor that fills the sample."""

from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tfx_edge.components.calibration_gen.allocation import allocate


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, dict[str, int], dict[str, int]]:
    """A sample's size, and strata that can fill it."""
    distinct = draw(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(1, 50), min_size=1, max_size=12))
    population = {s: d + draw(st.one_of(st.just(0), st.integers(0, 5000))) for s, d in distinct.items()}
    return draw(st.integers(len(distinct), sum(distinct.values()))), population, distinct


@given(problems())
@settings(deadline=None)
def test_every_stratum_gets_one_at_least_and_no_more_than_it_has_and_the_sample_is_full(problem: tuple) -> None:
    size, population, distinct = problem
    shares = allocate(size, population, distinct)
    assert sum(shares.values()) == size
    assert all(1 <= shares[s] <= distinct[s] for s in distinct)


@given(problems())
@settings(deadline=None)
def test_shares_are_the_exact_ones_rounded(problem: tuple) -> None:
    size, population, distinct = problem

    def exact(factor: Fraction) -> dict[str, Fraction]:
        return {s: min(max(factor * population[s], Fraction(1)), Fraction(distinct[s])) for s in distinct}

    low, high = Fraction(0), Fraction(max(distinct.values()))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(exact(middle).values()) < size else (low, middle)
    shares = allocate(size, population, distinct)
    assert all(abs(shares[s] - share) < 1 + Fraction(1, 10**6) for s, share in exact(high).items())


@given(problems())
@settings(deadline=None)
def test_a_larger_stratum_never_gets_less_where_it_has_the_records(problem: tuple) -> None:
    size, population, distinct = problem
    shares = allocate(size, population, distinct)
    for a in distinct:
        for b in distinct:
            if population[a] > population[b]:
                assert shares[a] >= min(shares[b], distinct[a])


@given(problems(), st.randoms())
@settings(deadline=None)
def test_the_order_of_the_strata_makes_no_difference(problem: tuple, random: Random) -> None:
    size, population, distinct = problem
    names = list(population)
    random.shuffle(names)
    assert allocate(size, {s: population[s] for s in names}, distinct) == allocate(size, population, distinct)


def test_without_bounds_in_the_way_fractions_are_dropped_and_the_rest_goes_to_the_largest() -> None:
    votes = {"a": 47000, "b": 16000, "c": 15900, "d": 12000, "e": 6000, "f": 3100}
    assert allocate(100, votes, votes) == {"a": 47, "b": 16, "c": 16, "d": 12, "e": 6, "f": 3}


def test_what_a_stratum_has_no_records_for_goes_to_the_others_by_size() -> None:
    population = {"all duplicates": 900, "large": 90, "small": 10}
    assert allocate(100, population, population | {"all duplicates": 10}) == {"all duplicates": 10, "large": 81, "small": 9}

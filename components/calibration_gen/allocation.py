"""How many records of a stratified sample each stratum gets."""

import math
from collections.abc import Mapping
from fractions import Fraction


def allocate(num_examples: int, population: Mapping[str, int], distinct: Mapping[str, int]) -> dict[str, int]:
    """Shares a sample out by the size of the strata: at least one record each, and never more than a stratum has.

    What a stratum can't take, or must get beyond its share, is shared out among the others, again by size. In exact terms
    the result is `min(max(t * population, 1), distinct)` with the one factor t that fills the sample, rounded by largest
    remainder: fractions are dropped, and the records left over go to the largest fractions, ties to the first name.
    Exact arithmetic, so the same counts give the same shares everywhere.

    >>> allocate(10, {"cat": 700, "dog": 290, "owl": 10}, {"cat": 700, "dog": 290, "owl": 10})
    {'cat': 6, 'dog': 3, 'owl': 1}

    Args:
        num_examples: size of the sample; at least the number of strata and at most the sum of `distinct`.
        population: records of each stratum, duplicates included.
        distinct: different records of each stratum.

    Returns:
        Records to take from each stratum, by name in sorted order; their sum is `num_examples`.
    """
    shares: dict[str, Fraction] = {}
    free, left = list(population), Fraction(num_examples)
    while free:
        size = sum(population[s] for s in free)
        exact = {s: left * population[s] / size for s in free}
        bounded = {s: min(max(exact[s], Fraction(1)), Fraction(distinct[s])) for s in free}
        # The bounds that give too much out together are final, or else those that give too little: the others may yet come
        # to lie within theirs when the rest is shared out again. (The same rule settles flexible lengths in CSS.)
        excess = sum(bounded.values()) - left
        final = [s for s in free if (bounded[s] - exact[s]) * excess > 0 or excess == 0]
        shares.update({s: bounded[s] for s in final})
        left -= sum(bounded[s] for s in final)
        free = [s for s in free if s not in shares]
    whole = {s: math.floor(share) for s, share in sorted(shares.items())}
    largest = sorted(whole, key=lambda s: (whole[s] - shares[s], s))
    for s in largest[: num_examples - sum(whole.values())]:
        whole[s] += 1
    return whole

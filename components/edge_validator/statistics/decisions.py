"""Does the data clear a bound, and if it can't tell, how much data would.

Every test is one-sided: the hypothesis is that the metric misses its bound, and a blessing needs it rejected. `alpha` of a gate
with a `confidence` is (1 - confidence) / 2, so a bound is cleared exactly where the two-sided interval lies wholly on the good
side of it.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from tfx_edge.components.edge_validator.statistics.estimates import Estimate

# Beyond this many examples the honest answer is that none would do.
_MOST = 10**12


def alpha(confidence: float) -> float:
    """The level of a one-sided test that reads a two-sided interval's bound.

    >>> round(alpha(0.95), 3)
    0.025
    """
    return (1 - confidence) / 2


def needed_examples(
    estimate: Callable[[float], Estimate], examples: int, bound: float, side: Literal["above", "below"], level: float
) -> int | None:
    """How many examples in all would clear a bound, if they have the mean and the variance of those that there are.

    Args:
        estimate: the estimate from `factor` times the examples, for example `lambda factor: difference(paired, factor)`.
        examples: those that there are.
        bound: what the true value must lie beyond.
        side: on which side.
        level: of the one-sided test, see `alpha`.

    Returns:
        `examples` where they suffice already; None where no number would do, since the measured value itself misses the bound,
        lies on it, or isn't known.
    """

    def clears(count: int) -> bool:
        return estimate(count / examples).p_value(bound, side) <= level

    if examples < 1:
        return None
    if clears(examples):
        return examples
    value = estimate(1).value
    if not (value > bound if side == "above" else value < bound):
        return None
    low, high = examples, examples
    while not clears(high):
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if clears(middle) else (middle, high)
    return high


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values: reject those at most alpha, and the chance that any rejection is wrong is at most alpha.

    What this changes for a gate: a blessing needs every bound of every slice cleared, so a bad model gets it only if the test
    of the very bound that it misses goes wrong. That chance is at most alpha without any correction, whatever the number of
    slices (an intersection-union test: Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24,
    1982). Holm is for reading the slices one by one: with it, all the statements "this slice lost less than max_drop" hold
    together with the confidence. It costs data: of m bounds the clearest must be cleared at alpha / m, the next at
    alpha / (m - 1), and so on (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6, 1979). It never blesses what the uncorrected gate refuses.

    Args:
        p_values: of all tests of the evaluation, each slice and bound; NaN counts as 1.

    Returns:
        One for each, in their order, none above 1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    known = [p if 0 <= p <= 1 else 1.0 for p in p_values]
    order = sorted(range(len(known)), key=known.__getitem__)
    adjusted = [0.0] * len(known)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(known) - rank) * known[index]))
        adjusted[index] = highest
    return tuple(adjusted)

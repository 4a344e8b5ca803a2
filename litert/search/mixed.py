"""The smallest set of operators at higher precision with which a model keeps its accuracy."""

from collections.abc import Sequence

from tfx_edge.litert.search.configs import changed
from tfx_edge.litert.search.operators import Operator
from tfx_edge.litert.search.trials import Candidate, Trials
from tfx_edge.schemas.accuracy import Fallback


class Mixture:
    """Tries sets of operators at the fallback, on top of a config."""

    def __init__(self, trials: Trials, base: Candidate, fallback: Fallback) -> None:
        """Starts from a config.

        Args:
            trials: tries them.
            base: a candidate that loses too much.
            fallback: what the operators at higher precision get.
        """
        self._trials, self._base, self._fallback = trials, base, fallback

    def __call__(self, operators: Sequence[Operator]) -> Candidate:
        """The model with these operators at the fallback."""
        rules = (*self._base.config.rules, *(op.at(self._fallback) for op in operators))
        remedies = (*self._base.trial.remedies, "mixed")
        return self._trials("mixed", changed(self._base.config, rules=rules), remedies, [op.tensor for op in operators])


def smallest_set(mixture: Mixture, ranked: Sequence[Operator]) -> Candidate | None:
    """The model with the fewest bytes of operators at higher precision, and no operator among them that could be put back.

    The shortest beginning of the ranking that keeps the accuracy is found by doubling and bisection. Then operators are put back
    one by one, those with the largest weights first, as long as the target holds and the file doesn't grow, until none can be:
    behind a bad ranking too, no single operator of the result is there in vain.

    Args:
        mixture: tries a set.
        ranked: the operators, most sensitive first.

    Returns:
        None where no beginning of the ranking keeps the accuracy, not even all of it.

    Raises:
        OutOfCandidates: see `Trials`.
    """
    count = _shortest(mixture, ranked)
    return None if count is None else _put_back(mixture, ranked[:count], ranked)


def _shortest(mixture: Mixture, ranked: Sequence[Operator]) -> int | None:
    low, high = 0, 1
    while not mixture(ranked[:high]).trial.feasible:
        if high >= len(ranked):
            return None
        low, high = high, min(2 * high, len(ranked))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if mixture(ranked[:middle]).trial.feasible else (middle, high)
    return high


def _put_back(mixture: Mixture, chosen: Sequence[Operator], ranked: Sequence[Operator]) -> Candidate:
    current = mixture(chosen)
    goes_on = len(chosen) > 1
    while goes_on:
        goes_on = False
        for op in sorted(chosen, key=lambda op: (-op.weight_bytes, -ranked.index(op))):
            fewer = [other for other in chosen if other != op]
            candidate = mixture(fewer) if fewer else current
            if candidate.trial.feasible and candidate.size < current.size:
                chosen, current, goes_on = fewer, candidate, True
    return current

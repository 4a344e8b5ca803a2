"""What each operator costs on its own: it alone is quantized, all others stay float.

Quantizing one finds what leaving one in float can't: two operators that each ruin the model hide each other from the latter, and so
do the two ends of one bad tensor, which stays quantized as long as either of them is.
"""

from collections.abc import Sequence

from tfx_edge.litert.search.configs import changed
from tfx_edge.litert.search.operators import Operator
from tfx_edge.litert.search.trials import Candidate, Trials


def rank(trials: Trials, base: Candidate, operators: Sequence[Operator]) -> list[Operator]:
    """Orders operators by the noise that each adds to the output, most first; between equals those with fewer weights.

    Noise, not the metric: an accuracy moves in steps, most of them luck, where one operator of many is quantized.

    Args:
        trials: tries them.
        base: whose config says what an operator is quantized to.
        operators: those to rank, in the order of execution.

    Raises:
        OutOfCandidates: see `Trials`.
    """
    noise = {
        op: trials("sensitivity", changed(base.config, rules=(*base.config.rules, op.alone())), base.trial.remedies, (op.tensor,)).noise
        for op in operators
    }
    return sorted(operators, key=lambda op: (-noise[op], op.weight_bytes))

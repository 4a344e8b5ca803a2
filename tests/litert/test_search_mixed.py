"""The smallest set of operators, found on models of which it is known beforehand."""

import math
import random

import pytest

from tfx_edge.litert.search.evaluator import Measured
from tfx_edge.litert.search.mixed import Mixture, smallest_set
from tfx_edge.litert.search.operators import Operator
from tfx_edge.litert.search.trials import Trials
from tfx_edge.schemas import AccuracyTarget, QuantizationConfig, Threshold

OPERATORS = [Operator("CONV_2D", (f"op{i}",), weight_bytes=1000 - i) for i in range(64)]


class Known:
    """A model that loses 1 for each operator that must be in float and isn't; a byte more for each operator in float."""

    def __init__(self, must: set[str]) -> None:
        self._must = must
        target = AccuracyTarget(threshold=Threshold(metric="MeanAbsoluteError", max_drop=0), label_key="y", split="validation")
        self.trials = Trials(target, self._quantize, self._evaluate, float_metric=0)
        self.mixture = Mixture(self.trials, self.trials("as_asked", QuantizationConfig()), "float32")

    def _quantize(self, config: QuantizationConfig) -> bytes:
        left = sorted(op.tensor for op in OPERATORS if any(rule.names(op.kind, op.tensor) for rule in config.rules))
        return ",".join(left).encode()

    def _evaluate(self, flatbuffer: bytes) -> Measured:
        lost = len(self._must - set(flatbuffer.decode().split(",")))
        return Measured(metric=lost, noise=lost)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 33, 63, 64])
def test_behind_a_right_ranking_the_set_takes_few_candidates(count: int) -> None:
    """Doubling and bisection for its length, and one for each operator to see that it can't be put back."""
    known = Known({op.tensor for op in OPERATORS[:count]})
    found = smallest_set(known.mixture, OPERATORS)
    assert found is not None and found.trial.operators == tuple(op.tensor for op in OPERATORS[:count])
    assert len(known.trials.tried) <= 1 + 2 * math.ceil(math.log2(64)) + 1 + count


@pytest.mark.parametrize("seed", range(5))
def test_behind_any_ranking_the_set_is_found(seed: int) -> None:
    generator = random.Random(seed)
    must = {op.tensor for op in generator.sample(OPERATORS, generator.randint(1, 8))}
    known = Known(must)
    found = smallest_set(known.mixture, generator.sample(OPERATORS, len(OPERATORS)))
    assert found is not None and set(found.trial.operators) == must


def test_there_is_no_set_where_all_operators_are_too_few() -> None:
    assert smallest_set(Known({"op0", "an operator that no rule reaches"}).mixture, OPERATORS) is None

"""Which backend quantizes a model better: the one whose error is clearly smaller, else the one whose file is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError, QuantizationPlan, TensorRanges

_EXAMPLES = 64
_EQUAL = 1.5  # times the smallest error: as equal as those of two quantizers get
_FLOOR = 0.02  # and so are errors below a fiftieth of the outputs' spread, which hardly change an answer


@dataclass(frozen=True)
class _Trial:
    """What a backend made of the model: a file and the error of its outputs, or why it couldn't."""

    plan: QuantizationPlan
    model: bytes = b""
    error: float = 0.0
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return f"{self.plan.backend} failed: {self.failure}"
        return f"{self.plan.backend} {inspect.gzip_size(self.model)} bytes gzipped with error {self.error:.3g}"


def choose(
    float_model: bytes,
    plans: Sequence[QuantizationPlan],
    make: Callable[[QuantizationPlan], bytes],
    ranges: TensorRanges | None,
    examples: Mapping[str, NDArray[Any]] | None,
) -> tuple[QuantizationPlan, str, bytes]:
    """Tries plans of one model that differ in their backend.

    Args:
        float_model: the float flatbuffer.
        plans: the first wins a tie.
        make: gives a plan's flatbuffer.
        ranges: of the activations, which random examples keep to.
        examples: `[n, ...]` each, by feature name; None for random ones.

    Returns:
        The plan, why it was chosen, with sizes and errors of all, and its flatbuffer.

    Raises:
        EdgeError: every backend failed; the text has what each said.
    """
    runner = Runner(float_model)
    given = examples if examples is not None else _random(float_model, runner, ranges)
    expected = runner(given)
    trials = [_try(plan, make, given, expected) for plan in plans]
    made = [trial for trial in trials if not trial.failure]
    told = "; ".join(map(str, trials))
    if not made:
        raise EdgeError(f"no backend can quantize the model: {told}")
    bound = max(_EQUAL * min(trial.error for trial in made), _FLOOR)
    equal = [trial for trial in made if trial.error <= bound]
    best = min(equal, key=lambda trial: inspect.gzip_size(trial.model))
    why = "the only one that works" if len(made) == 1 else "smaller at equal error" if len(equal) > 1 else "smaller error"
    return best.plan, f"{best.plan.backend}: {why} ({told})", best.model


def _try(
    plan: QuantizationPlan,
    make: Callable[[QuantizationPlan], bytes],
    examples: Mapping[str, NDArray[Any]],
    expected: Mapping[str, NDArray[Any]],
) -> _Trial:
    try:
        model = make(plan)
        got = Runner(model, name=f"backend {plan.backend!r}")(examples)
    except (EdgeError, RuntimeError) as error:  # a child process that ended oddly is a RuntimeError
        return _Trial(plan, failure=" ".join(str(error).split())[:300])
    return _Trial(plan, model, max((_error(got[name], values) for name, values in expected.items()), default=0.0))


def _error(got: NDArray[Any], expected: NDArray[Any]) -> float:
    """Mean absolute difference by the spread of what is expected; an output that isn't a number compares for equality."""
    if expected.dtype.kind not in "fiu":
        return float(np.mean(got != expected))
    real = expected.astype(np.float64)
    return float(np.mean(np.abs(got.astype(np.float64) - real)) / (np.std(real) or 1.0))


def _random(float_model: bytes, runner: Runner, ranges: TensorRanges | None) -> dict[str, NDArray[Any]]:
    """Uniform within each input's range, or 0 to 1 without one; integers are small, since they may be indices of a table."""
    graph = inspect.parse(float_model).subgraphs[0]
    generator = np.random.default_rng(0)
    known = ranges.ranges if ranges else {}
    found: dict[str, NDArray[Any]] = {}
    for spec in runner.signature.inputs:
        shape = (_EXAMPLES, *(1 if d is None else d for d in (spec.shape or ())[1:]))
        tensor_range = known.get(graph.tensors[runner.entry.inputs[spec.name]].name.decode())
        low, high = (tensor_range.min, tensor_range.max) if tensor_range else (0.0, 1.0)
        kind = np.dtype(spec.dtype).kind if spec.dtype != "string" else "S"
        if kind == "f":
            found[spec.name] = generator.uniform(low, high, shape).astype(spec.dtype)
        elif kind == "S":
            found[spec.name] = np.full(shape, b"", object)
        else:
            found[spec.name] = generator.integers(0, 2, shape).astype(spec.dtype)
    return found

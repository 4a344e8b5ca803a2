"""How long one prediction takes, as a ratio to another model's: the two in turn, in one process.

A ratio carries over to a device where milliseconds don't, and taking turns spares it whatever else the machine does: both
models meet the same load, clock and cache.
"""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError

_SAMPLE_S = 0.002  # a sample repeats a fast model for so long that the clock and the call from Python don't show


@dataclass(frozen=True)
class Latency:
    """Measured latencies of two models.

    Attributes:
        candidate_ms: median milliseconds of one step, for one example where the model takes any batch, else for its batch
            divided by the batch.
        reference_ms: the same of the model to compare with.
        spread: smallest and largest ratio of a single round.
        runs: rounds, each a sample of either model.
    """

    candidate_ms: float
    reference_ms: float
    spread: tuple[float, float]
    runs: int

    @property
    def ratio(self) -> float:
        """Candidate to reference; below 1 the candidate is faster."""
        return self.candidate_ms / self.reference_ms


def latency_ratio(
    candidate: bytes,
    reference: bytes,
    features: Mapping[str, NDArray[Any]],
    *,
    num_threads: int = 1,
    runs: int = 31,
    time_limit_s: float = 120.0,
) -> Latency:
    """Measures the first example's prediction by both models, in a process of its own.

    Timed is LiteRT's work alone: inputs are converted before. The models take turns, each round in the other order; the first
    rounds, in which caches fill and clocks rise, don't count.

    Args:
        candidate: a flatbuffer.
        reference: the one to compare with.
        features: `[n, ...]` each, by feature name; may hold more than the models take.
        num_threads: threads that LiteRT may use, as many as on the device.
        runs: rounds, at least 5.
        time_limit_s: seconds for the whole measurement.

    Raises:
        EdgeError: no examples, too few runs, or a model can't be loaded, can't predict, kills the process or takes too long.
    """
    if runs < 5:
        raise EdgeError(f"latency: runs {runs}; a median of fewer than 5 says too little, give at least 5")
    first = first_example(features)
    return call_in_child(_measure, candidate, reference, first, num_threads, runs, time_limit_s=time_limit_s)


def first_example(features: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """A batch's first example, as a batch of one.

    Raises:
        EdgeError: there is none.
    """
    if not features or any(len(a) == 0 for a in features.values()):
        raise EdgeError("no example to run the models on; give at least one")
    return {name: a[:1] for name, a in features.items()}


def _measure(note: Note, candidate: bytes, reference: bytes, features: dict[str, NDArray[Any]], num_threads: int, runs: int) -> Latency:
    models = []
    for name, model in (("candidate", candidate), ("reference", reference)):
        note(f"latency: the {name}'s first prediction")
        runner = Runner(model, num_threads=num_threads, name=f"latency: the {name}")
        runner(features, "the example")
        models.append(runner)
    note("latency: timing candidate and reference")
    repeats = [_repeats(runner) for runner in models]
    samples: list[list[float]] = [[], []]
    warm_up = max(2, runs // 5)
    for turn in range(warm_up + runs):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            milliseconds = _sample(models[which], repeats[which]) / (models[which].batch_size or 1)
            if turn >= warm_up:
                samples[which].append(milliseconds)
    ratios = [a / b for a, b in zip(*samples, strict=True)]
    return Latency(statistics.median(samples[0]), statistics.median(samples[1]), (min(ratios), max(ratios)), runs)


def _repeats(runner: Runner) -> int:
    """How often a model runs in one sample: as often as fits into it, at least once."""
    repeats = 1
    while (milliseconds := _sample(runner, repeats)) * repeats < _SAMPLE_S * 1e3 / 2:
        repeats *= 2
    return max(1, round(_SAMPLE_S * 1e3 / milliseconds))


def _sample(runner: Runner, repeats: int) -> float:
    """Mean milliseconds of a step."""
    start = time.perf_counter()
    for _ in range(repeats):
        runner.repeat()
    return (time.perf_counter() - start) * 1e3 / repeats

"""What the candidate costs a device, in itself and against the float flatbuffer, and what the budget says of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import NDArray

from tfx_edge.litert.inspect import gzip_size, operators
from tfx_edge.litert.latency import Latency, latency_ratio
from tfx_edge.litert.memory import peak_memory
from tfx_edge.schemas import Budget, EdgeError

_T = TypeVar("_T")


@dataclass(frozen=True)
class Cost:
    """What was measured; None where the budget didn't ask, or it couldn't be measured.

    Attributes:
        size_bytes: of the candidate.
        gzip_bytes: of the candidate, after gzip -9.
        operators: how often the candidate has each.
        baseline_size_bytes: of the float flatbuffer.
        baseline_gzip_bytes: of the float flatbuffer, after gzip -9.
        latency: of both for one example.
        peak_memory_bytes: that the candidate adds to a process.
        reasons: why the costs speak against a blessing.
    """

    size_bytes: int
    gzip_bytes: int
    operators: dict[str, int]
    baseline_size_bytes: int | None
    baseline_gzip_bytes: int | None
    latency: Latency | None
    peak_memory_bytes: int | None
    reasons: tuple[str, ...]


def measure_cost(
    candidate: bytes,
    float_flatbuffer: Callable[[], bytes],
    features: Mapping[str, NDArray[Any]] | None,
    budget: Budget,
    num_threads: int = 1,
    time_limit_s: float = 120.0,
) -> Cost:
    """Measures what a budget needs and compares. A budget that can't be measured is a reason too.

    Args:
        candidate: the flatbuffer.
        float_flatbuffer: gives the baseline's; called only if the budget compares with it.
        features: at least one example, `[n, ...]` by feature name; None where the models can't take any.
        budget: the bounds.
        num_threads: threads that LiteRT may use, as many as on the device.
        time_limit_s: seconds for a measurement.
    """
    reasons: list[str] = []

    def measured(name: str, measure: Callable[[], _T]) -> _T | None:
        """A measurement, if the budget names it."""
        bound = getattr(budget, name)
        if bound is None:
            return None
        try:
            return measure()
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being measured keeps the budget from being met
            why = " ".join(str(error).split())
            reasons.append(f"budget: {name} {_text(bound)} can't be measured: {why}; mend it or drop the budget")
            return None

    def example() -> Mapping[str, NDArray[Any]]:
        if features is None:
            raise EdgeError("the models couldn't be run")
        return features

    size, gzip = len(candidate), gzip_size(candidate)
    reasons += [
        *_over("the flatbuffer", size, "max_bytes", budget.max_bytes),
        *_over("gzip -9", gzip, "max_gzip_bytes", budget.max_gzip_bytes),
    ]
    there = measured("operators", lambda: operators(candidate))
    reasons += _foreign(there or {}, budget.operators or ())
    flatbuffer = measured("min_gzip_ratio", float_flatbuffer)
    baseline_gzip = None if flatbuffer is None else gzip_size(flatbuffer)
    if baseline_gzip is not None and budget.min_gzip_ratio is not None:
        reasons += _too_large(gzip, baseline_gzip, budget.min_gzip_ratio)
    latency = measured(
        "max_latency_ratio",
        lambda: latency_ratio(candidate, float_flatbuffer(), example(), num_threads=num_threads, time_limit_s=time_limit_s),
    )
    if latency is not None and budget.max_latency_ratio is not None:
        reasons += _too_slow(latency, budget.max_latency_ratio)
    memory = measured(
        "max_peak_memory_bytes", lambda: peak_memory(candidate, example(), num_threads=num_threads, time_limit_s=time_limit_s)
    )
    if memory is not None and budget.max_peak_memory_bytes is not None and memory > budget.max_peak_memory_bytes:
        reasons.append(
            f"memory: the candidate adds {memory} bytes to a process at its peak, max_peak_memory_bytes is {budget.max_peak_memory_bytes}; "
            "make its activations smaller, or raise the budget"
        )
    return Cost(
        size, gzip, _operators(candidate), None if flatbuffer is None else len(flatbuffer), baseline_gzip, latency, memory, tuple(reasons)
    )


def _operators(candidate: bytes) -> dict[str, int]:
    try:
        return operators(candidate)
    except EdgeError:  # a damaged flatbuffer, of which the evaluation says more
        return {}


def _over(what: str, have: int, name: str, limit: int | None) -> Iterator[str]:
    if limit is not None and have > limit:
        yield f"size: {what} has {have} bytes, {have - limit} more than {name} {limit}; prune or quantize further, or raise the budget"


def _foreign(there: Mapping[str, int], allowed: tuple[str, ...]) -> Iterator[str]:
    foreign = sorted(set(there) - set(allowed))
    if foreign and allowed:
        yield f"operators: the candidate has {', '.join(foreign)}, the device's runtime {', '.join(allowed)}; replace their layers"


def _too_large(gzip: int, baseline_gzip: int, ratio: float) -> Iterator[str]:
    if baseline_gzip / gzip < ratio:  # not the product: 1.1 * 10 is more than 11
        yield (
            f"size: the float flatbuffer has {baseline_gzip} bytes after gzip -9, the candidate {gzip}, "
            f"{baseline_gzip / gzip:.2f} times less, min_gzip_ratio is {ratio:g}; prune or quantize further, or lower the budget"
        )


def _too_slow(latency: Latency, ratio: float) -> Iterator[str]:
    if latency.ratio > ratio:
        yield (
            f"latency: the candidate takes {latency.candidate_ms:.3g} ms for one example here, the float flatbuffer "
            f"{latency.reference_ms:.3g} ms, {latency.ratio:.2f} times as long, max_latency_ratio is {ratio:g}; "
            "make the model smaller, or raise the budget"
        )


def _text(bound: object) -> str:
    return f"{bound:g}" if isinstance(bound, (int, float)) else str(bound)

"""What the candidate weighs, and where a budget asks, against the baseline as a float flatbuffer."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.litert.inspect import gzip_size
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.schemas import Budget, EdgeError


@dataclass(frozen=True)
class Sizes:
    """Bytes of both flatbuffers, as they are and after gzip -9.

    Attributes:
        size: of the candidate.
        gzip: of the candidate.
        baseline_size: None where it wasn't measured.
        baseline_gzip: None where it wasn't measured.
        reasons: why the sizes speak against a blessing.
    """

    size: int
    gzip: int
    baseline_size: int | None
    baseline_gzip: int | None
    reasons: tuple[str, ...]


def measure_sizes(candidate: bytes, baseline: str | None, transform_graph: str | None, budget: Budget) -> Sizes:
    """Measures what a budget needs and compares. A budget that can't be measured is a reason too.

    Args:
        candidate: the flatbuffer.
        baseline: folder of the float SavedModel; it is converted only if the budget compares with it.
        transform_graph: folder of the TransformGraph artifact, where there is one.
        budget: the bounds.
    """
    size, gzip = len(candidate), gzip_size(candidate)
    reasons = [
        *_over("the flatbuffer", size, "max_bytes", budget.max_bytes),
        *_over("gzip -9", gzip, "max_gzip_bytes", budget.max_gzip_bytes),
    ]
    baseline_size = baseline_gzip = None
    if budget.min_gzip_ratio is not None:
        try:
            if baseline is None:
                raise EdgeError("there is no baseline")
            flatbuffer = convert_model(load_float_model(baseline, transform_graph), "the baseline")
        except Exception as error:  # noqa: BLE001 - whatever keeps the baseline from being measured keeps the budget from being met
            why = " ".join(str(error).split())
            reasons.append(f"size: min_gzip_ratio {budget.min_gzip_ratio:g} can't be measured: {why}; mend it or drop the budget")
        else:
            baseline_size, baseline_gzip = len(flatbuffer), gzip_size(flatbuffer)
            reasons += _too_large(gzip, baseline_gzip, budget.min_gzip_ratio)
    return Sizes(size, gzip, baseline_size, baseline_gzip, tuple(reasons))


def _over(what: str, have: int, name: str, limit: int | None) -> Iterator[str]:
    if limit is not None and have > limit:
        yield f"size: {what} has {have} bytes, {have - limit} more than {name} {limit}; prune or quantize further, or raise the budget"


def _too_large(gzip: int, baseline_gzip: int, ratio: float) -> Iterator[str]:
    if baseline_gzip / gzip < ratio:  # not the product: 1.1 * 10 is more than 11
        yield (
            f"size: the float flatbuffer has {baseline_gzip} bytes after gzip -9, the candidate {gzip}, "
            f"{baseline_gzip / gzip:.2f} times less, min_gzip_ratio is {ratio:g}; prune or quantize further, or lower the budget"
        )

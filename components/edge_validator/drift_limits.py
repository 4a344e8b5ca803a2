"""Limits on how far predictions may move, held against how far they moved. Pure functions."""

from collections.abc import Iterator, Sequence

from tfx_edge.schemas import DriftLimit, OutputDrift


def beyond_limits(limits: Sequence[DriftLimit], drift: Sequence[OutputDrift]) -> list[str]:
    """A line for each limit that predictions moved beyond, or that nothing can be said of.

    Args:
        limits: of the config.
        drift: of each output over all examples.
    """
    return [line for limit in limits for line in _beyond(limit, drift)]


def _beyond(limit: DriftLimit, drift: Sequence[OutputDrift]) -> Iterator[str]:
    meant = [d for d in drift if limit.output is None or d.output == limit.output]
    if not meant:
        there = ", ".join(str(d.output) for d in drift if d.output is not None) or "one, without a name"
        yield f"drift: limit on output {limit.output!r}, the models' outputs are {there}; name one of these, or leave the output out"
    for output in meant:
        title = "drift" if output.output is None else f"drift of output {output.output!r}"
        for name, value, why in (
            ("max_flip_rate", output.flip_rate, "the output decides nothing, as its labels are no classes"),
            ("max_mean_abs_error", output.mean_abs_error, "its values aren't real numbers"),
            ("max_worst_abs_error", output.worst_abs_error, "its values aren't real numbers"),
        ):
            bound = getattr(limit, name)
            if bound is None:
                continue
            if value is None:
                yield f"{title}: {name} {bound:g} can't be measured: {why}; drop the limit"
            elif value > bound:
                yield f"{title}: {name.removeprefix('max_')} is {value:.4g}, {name} {bound:g}; look at the layers' errors"
        yield from _noise(title, limit.min_sqnr_db, output)


def _noise(title: str, bound: float | None, output: OutputDrift) -> Iterator[str]:
    if bound is None or output.worst_abs_error == 0:  # the same values: no noise at all
        return
    if output.sqnr_db is None:
        yield f"{title}: min_sqnr_db {bound:g} can't be measured: the baseline's output is always 0; drop the limit"
    elif output.sqnr_db < bound:
        yield f"{title}: sqnr_db is {output.sqnr_db:.4g}, min_sqnr_db {bound:g}; look at the layers' errors"

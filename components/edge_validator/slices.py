"""Slices of the config against slices of the data. Pure functions, no TFMA."""

from tfx_edge.schemas import GateConfig, Slice, Threshold

SliceKey = tuple[tuple[str, str | int | float], ...]


def evaluated_slices(config: GateConfig) -> tuple[Slice, ...]:
    """The slices to evaluate besides the overall one: the config's and the thresholds', each once."""
    every = [*config.slices, *(s for threshold in config.thresholds for s in threshold.slices or ())]
    return tuple(s for i, s in enumerate(every) if s not in every[:i])


def gated_slices(config: GateConfig, threshold: Threshold) -> tuple[Slice | None, ...]:
    """Where a threshold holds; None stands for the overall slice."""
    return threshold.slices if threshold.slices is not None else (None, *config.slices)


def matches(slice_: Slice | None, key: SliceKey) -> bool:
    """Whether a slice of the data is one that a slice of the config names.

    The config writes values as text; in a feature of numbers the text is read as one.
    """
    if slice_ is None:
        return not key
    if {feature for feature, _ in key} != {*slice_.feature_keys, *slice_.feature_values}:
        return False
    return all(feature not in slice_.feature_values or _is(value, slice_.feature_values[feature]) for feature, value in key)


def _is(value: str | int | float, written: str) -> bool:
    return value == (written if isinstance(value, str) else typed(written))


def is_evaluated(config: GateConfig, key: SliceKey) -> bool:
    """Whether a slice of the data is the overall one or one that the config asks for."""
    return not key or any(matches(s, key) for s in evaluated_slices(config))


def typed(value: str | int | float) -> str | int | float:
    """A slice's value as TFMA compares it: text that reads as a number is that number."""
    if not isinstance(value, str):
        return value
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return value

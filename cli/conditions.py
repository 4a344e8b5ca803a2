"""Options of commands that judge a model: thresholds, slices, targets."""

from collections.abc import Callable
from typing import Any

import click

from tfx_edge.schemas import Slice, Target, Threshold

_DEFAULT_METRIC = "SparseCategoricalAccuracy"

_OPTIONS = (
    click.option("--label", required=True, help="The feature that holds the label."),
    click.option("--metric", "metrics", multiple=True, help=f"A metric of Keras or TFMA; repeatable. [default: {_DEFAULT_METRIC}]"),
    click.option("--max-drop", type=click.FloatRange(min=0), help="How much worse than the float model it may be: 0.01 is one point."),
    click.option("--lower-bound", type=float, help="Smallest value of the metric."),
    click.option("--upper-bound", type=float, help="Largest value of the metric."),
    click.option("--slice", "slices", multiple=True, help="Feature whose every value is a slice of its own; a,b crosses two; repeatable."),
    click.option("--min-examples", type=click.IntRange(min=1), default=20, show_default=True, help="A slice with fewer fails."),
    click.option("--confidence", type=click.FloatRange(0.5, 1, max_open=True), help="Bless only if max-drop holds with it: 0.95."),
    click.option("--target", "targets", multiple=True, help="Device that must be able to run it: tflm, ethos-u55, ...; repeatable."),
)


def conditions(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options, in the order above."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def gate_config(
    label: str,
    metrics: tuple[str, ...],
    max_drop: float | None,
    lower_bound: float | None,
    upper_bound: float | None,
    slices: tuple[str, ...],
    min_examples: int,
    confidence: float | None,
    targets: tuple[str, ...],
) -> dict[str, Any]:
    """What the options say, as fields of a GateConfig.

    Raises:
        ConfigError: they don't fit each other, or a target has no such profile.
    """
    bounds = {"max_drop": max_drop, "lower_bound": lower_bound, "upper_bound": upper_bound}
    return {
        "label_key": label,
        "thresholds": tuple(Threshold.model_validate({"metric": metric, **bounds}) for metric in metrics or (_DEFAULT_METRIC,)),
        "slices": tuple(Slice(feature_keys=tuple(part.split(","))) for part in slices),
        "min_examples": min_examples,
        "confidence": confidence,
        "targets": tuple(Target(profile=target) for target in targets),
    }

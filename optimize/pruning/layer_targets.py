"""Which sparsity each layer is asked for: patterns, and what counts as a model's first and last layers."""

from collections.abc import Collection

import tf_keras

from tfx_edge.optimize.layer_calls import layer_calls
from tfx_edge.optimize.layer_patterns import UNSELECTED, check_patterns, first_match, is_selected
from tfx_edge.schemas import EdgeError, PruningConfig


def layer_targets(model: tf_keras.Model, config: PruningConfig, prunable: Collection[str]) -> tuple[dict[str, float], dict[str, str]]:
    """Applies what a config says about layers by name.

    Args:
        model: functional or Sequential.
        config: patterns, and whether the first and last layers are left.
        prunable: names of the layers that could be pruned, which decides what is first and last.

    Returns:
        Layer name to sparsity for the layers that are selected, and to the reason for all others.

    Raises:
        EdgeError: a pattern matches nothing.
    """
    names = [layer.name for layer in model.layers]
    check_patterns("layers", config.layers, names, model.name)
    selected = [name for name in names if is_selected(name, config.layers)]
    for pattern in config.layer_sparsity:
        if not any(is_selected(name, (pattern,)) for name in selected):
            raise EdgeError(f"layer_sparsity: pattern {pattern!r} matches none of the layers that `layers` selects: {', '.join(selected)}")
    left = {name: UNSELECTED.format("layers") for name in names if name not in selected}
    if config.skip_first:
        left |= dict.fromkeys(_outermost(model, prunable, forward=True), "skip_first: no other prunable layer comes before it")
    if config.skip_last:
        left |= dict.fromkeys(_outermost(model, prunable, forward=False), "skip_last: no other prunable layer comes after it")
    return {name: first_match(name, config.layer_sparsity, config.target_sparsity) for name in names if name not in left}, left


def _outermost(model: tf_keras.Model, prunable: Collection[str], *, forward: bool) -> list[str]:
    """The prunable layers that are reached from the model's inputs (or outputs) without passing another, on every way."""
    calls = list(layer_calls(model))
    behind: dict[int, bool] = {}  # tensor: whether a prunable layer lies between it and the model's edge
    outermost = dict.fromkeys(prunable, True)
    for call in calls if forward else reversed(calls):
        near, far = (call.inputs, call.outputs) if forward else (call.outputs, call.inputs)
        passed = any(behind.get(tensor, False) for tensor in near)
        name = call.layer.name
        if name in outermost:
            outermost[name] &= not passed
            passed = True
        for tensor in far:
            behind[tensor] = behind.get(tensor, False) or passed
    return [name for name, outer in outermost.items() if outer]

"""Counting zeros, and the number of them that a target asks for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.pruning.selection import Choice
from tfx_edge.schemas import LayerSparsity, PruningConfig, SparsityReport


def zeros_wanted(size: int, sparsity: float) -> int:
    """How many of a tensor's elements are zero at a sparsity; tfmot's arithmetic, which rounds in float32 and keeps at least one."""
    return size - max(int(np.round(np.float32(size) * (np.float32(1) - np.float32(sparsity)))), 1)


def break_ties(weights: NDArray[Any], sparsity: float) -> NDArray[Any]:
    """Brings a pruned tensor to its target where equal magnitudes kept tfmot from it.

    tfmot keeps every weight as large as the smallest that it means to keep, so a clustered kernel ends far below the target.

    Args:
        weights: any shape; returned as it is where enough elements are zero.
        sparsity: the target, 0 to 1.

    Returns:
        The same shape with at least `zeros_wanted` zeros, the smallest magnitudes first and the first of equal ones.
    """
    wanted = zeros_wanted(weights.size, sparsity)
    if np.count_nonzero(weights == 0) >= wanted:
        return weights
    flat = weights.flatten()
    flat[np.argsort(np.abs(flat), kind="stable")[:wanted]] = 0
    return flat.reshape(weights.shape)


def report_sparsity(model: tf_keras.Model, choices: Sequence[Choice], config: PruningConfig) -> SparsityReport:
    """Counts the zeros of every layer with weights.

    Args:
        model: the pruned model without wrappers.
        choices: of each of its layers.
        config: for the report.
    """
    layers = []
    for choice in choices:
        weights = model.get_layer(choice.layer).get_weights()
        if not weights:
            continue
        kernels = [weights[place] for place in choice.prunable]
        size = sum(kernel.size for kernel in kernels)
        zeros = sum(int(np.count_nonzero(kernel == 0)) for kernel in kernels)
        layers.append(
            LayerSparsity(
                layer=choice.layer,
                type=choice.type,
                weights=size,
                zeros=zeros,
                sparsity=zeros / size if size else 0.0,
                pruned=choice.pruned,
                reason=choice.reason,
            )
        )
    pruned = [layer for layer in layers if layer.pruned]
    total = sum(layer.zeros for layer in pruned) / sum(layer.weights for layer in pruned)
    return SparsityReport(config=config, layers=tuple(layers), sparsity=total)

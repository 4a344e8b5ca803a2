"""Counting zeros."""

from collections.abc import Sequence

import numpy as np
import tf_keras

from tfx_edge.optimize.pruning.selection import Choice
from tfx_edge.schemas import LayerSparsity, PruningConfig, SensitivityReport, SparsityReport


def report_sparsity(
    model: tf_keras.Model, choices: Sequence[Choice], config: PruningConfig, sensitivity: SensitivityReport | None = None
) -> SparsityReport:
    """Counts the zeros of every layer with weights.

    Args:
        model: the pruned model without wrappers.
        choices: of each of its layers.
        config: for the report.
        sensitivity: for the report.
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
                target=choice.target,
                pruned=choice.pruned,
                reason=choice.reason,
            )
        )
    pruned = [layer for layer in layers if layer.pruned]
    total = sum(layer.zeros for layer in pruned) / sum(layer.weights for layer in pruned)
    return SparsityReport(config=config, layers=tuple(layers), sparsity=total, sensitivity=sensitivity)

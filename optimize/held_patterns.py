"""What compression has put into the kernels of a model already, so that the next technique doesn't undo it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.weight_pattern import WeightPattern, pattern_of

_INT8_VALUES = 255  # with narrow range; a kernel of more can't keep them apart
_SPARSE = 0.05  # share of zeros from which on they are no accident
_SHARED = 0.9  # distinct values by weights; of a large float kernel, few weights are equal by chance


@dataclass(frozen=True)
class Holds:
    """What a kernel holds.

    Attributes:
        sparsity: zeros that are no accident.
        clusters: values that its weights share, in the whole or by channel.
        one_scale: the shared values are few in the whole kernel, so that one scale for all channels keeps them few as integers.
    """

    sparsity: bool
    clusters: bool
    one_scale: bool


def holds(kernel: NDArray[Any]) -> Holds:
    """Looks at a kernel; its last axis is the output channel.

    >>> holds(np.array([[0.0, 0.5, 0.5], [0.0, 0.5, 0.25], [0.25, 0.0, 0.25]]))
    Holds(sparsity=True, clusters=True, one_scale=True)
    """
    nonzero = kernel[kernel != 0]
    values = np.unique(nonzero).size
    clusters = 0 < values <= _SHARED * nonzero.size
    return Holds(bool(np.mean(kernel == 0) >= _SPARSE), clusters, clusters and values <= _INT8_VALUES)


def kernels(layer: tf_keras.layers.Layer) -> Iterator[tf.Variable]:
    """The weights of a layer that compression works on: matrices and convolutions, not biases or scales."""
    yield from (variable for variable in layer.trainable_weights if len(variable.shape) >= 2)


def held_patterns(model: tf_keras.Model, governed: Collection[str] = ()) -> list[tuple[tf.Variable, WeightPattern]]:
    """The patterns of zeros and shared values in a model's kernels, for `KeepPatterns`.

    Args:
        model: as it is before it is trained.
        governed: names of the layers, or of the layers in wrappers, whose kernels the technique itself sees to.
    """
    found: dict[int, tuple[tf.Variable, WeightPattern]] = {}
    for layer in model.layers:
        if getattr(layer, "layer", layer).name in governed or layer.name in governed:
            continue
        for variable in kernels(layer):
            values = variable.numpy()
            held = holds(values)
            if held.sparsity or held.clusters:
                found[id(variable)] = variable, pattern_of(values, zeros=held.sparsity, shared=held.clusters)
    return list(found.values())

"""What compression put into a weight tensor, zeros and shared values, kept to the last element while the rest is trained.

After every step of the optimizer a tensor is projected back: zeros become zero again, and the members of a group their mean.
The mean of the members' steps is the step of the value that they share, so this is descent on the shared values (Han et al.
2015, https://arxiv.org/abs/1510.00149), with any optimizer and any layer, and without wrappers around the layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from numpy.typing import NDArray


@dataclass(frozen=True)
class WeightPattern:
    """Which elements of a tensor are zero and which share a value.

    Attributes:
        groups: int32, shape of the tensor: elements of one group share a value; None where none do.
        zeros: bool, shape of the tensor: elements that stay zero; they are groups of their own.
    """

    groups: NDArray[np.int32] | None
    zeros: NDArray[np.bool_]

    def project(self, values: tf.Tensor) -> tf.Tensor:
        """The nearest tensor with this pattern, by squared distance; same shape and dtype.

        >>> pattern = WeightPattern(np.array([0, 0, 1], np.int32), np.array([False, False, True]))
        >>> pattern.project(tf.constant([1.0, 3.0, 5.0])).numpy()
        array([2., 2., 0.], dtype=float32)
        """
        if self.groups is not None:
            count = int(self.groups.max()) + 1
            means = tf.math.unsorted_segment_mean(tf.reshape(values, [-1]), self.groups.reshape(-1), count)
            values = tf.gather(means, self.groups)
        return tf.where(self.zeros, tf.zeros_like(values), values)


def pattern_of(values: NDArray[Any], zeros: bool, shared: bool) -> WeightPattern:
    """The pattern that a tensor has.

    Args:
        values: any shape.
        zeros: keep its zeros.
        shared: keep equal elements equal.
    """
    groups = np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.int32) if shared else None
    return WeightPattern(groups, (values == 0) if zeros else np.zeros(values.shape, bool))


def distinct_values(values: NDArray[Any], per_channel: bool = False) -> int:
    """How many distinct values a tensor holds; with `per_channel`, the most in any slice of its last axis.

    >>> distinct_values(np.array([[1, 2], [1, 3]])), distinct_values(np.array([[1, 2], [1, 3]]), per_channel=True)
    (3, 2)
    """
    if per_channel:
        return max(int(np.unique(channel).size) for channel in np.moveaxis(values, -1, 0))
    return int(np.unique(values).size)


class KeepPatterns(tf_keras.callbacks.Callback):
    """Projects variables after each step of a training, and once more at its end, after weights may have been restored."""

    def __init__(self, patterns: Sequence[tuple[tf.Variable, WeightPattern]]) -> None:
        super().__init__()
        self._patterns = tuple(patterns)
        self._project = tf.function(self._project_all)

    def _project_all(self) -> None:
        for variable, pattern in self._patterns:
            variable.assign(pattern.project(variable))

    def on_train_begin(self, logs: Any = None) -> None:
        self._project()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._project()

    def on_train_end(self, logs: Any = None) -> None:
        self._project()

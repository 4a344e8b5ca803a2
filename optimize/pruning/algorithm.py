"""One way in for every granularity."""

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.pruning.filters import remove_filters
from tfx_edge.optimize.pruning.magnitude import zero_weights
from tfx_edge.schemas import FilterReport, PruningConfig, SparsityReport
from tfx_edge.schemas.granularity import Filters


def prune(
    model: tf_keras.Model, dataset: tf.data.Dataset, config: PruningConfig, *, validation: tf.data.Dataset | None = None
) -> tuple[tf_keras.Model, SparsityReport | FilterReport]:
    """Makes the smallest weights of the selected layers zero, or takes their smallest filters out, and trains the rest to do without.

    Args:
        model: Keras 2, functional or Sequential, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: how much of which layers goes in what units, and how the fine-tuning goes.
        validation: examples that aren't trained on, for early stopping, as `dataset`; see `fine_tune`.

    Returns:
        A model of the same layers, smaller ones with granularity `filters`, compiled as the given one was; and what was done
        to each layer: a `FilterReport` with granularity `filters`, else a `SparsityReport`.

    Raises:
        EdgeError: the model can't be pruned so, a pattern matches nothing, the model's weights aren't finite, or the examples
            don't fit.
    """
    if isinstance(config.granularity, Filters):
        return remove_filters(model, dataset, config, config.granularity, validation)
    return zero_weights(model, dataset, config, validation)

"""Share the weights, fine-tune the shared values, count."""

from collections.abc import Sequence

import tensorflow as tf
import tf_keras

from tfx_edge.optimize.clustering.centroids import share
from tfx_edge.optimize.clustering.selection import Choice, choose_layers
from tfx_edge.optimize.fine_tuning import count_steps, fine_tune, input_batches
from tfx_edge.optimize.finite import check_trained
from tfx_edge.optimize.held_patterns import held_patterns
from tfx_edge.optimize.model_copy import compile_like, copy_model
from tfx_edge.optimize.technique_inputs import check_inputs
from tfx_edge.optimize.weight_pattern import KeepPatterns, distinct_values
from tfx_edge.schemas import ClusteredLayer, ClusteringConfig, ClusteringReport


def cluster(
    model: tf_keras.Model, dataset: tf.data.Dataset, config: ClusteringConfig, *, validation: tf.data.Dataset | None = None
) -> tuple[tf_keras.Model, ClusteringReport]:
    """Lets the weights of each selected kernel share a few values, and trains these.

    Weight sharing of Deep Compression (Han et al. 2015, https://arxiv.org/abs/1510.00149): k-means over a kernel's weights, then
    descent on the centroids. Which layers have what kernels, and where centroids start, is tfmot's.

    Args:
        model: Keras 2, functional or Sequential, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: how many values which layers get, and how the fine-tuning goes.
        validation: examples that aren't trained on, for early stopping, as `dataset`; see `fine_tune`.

    Returns:
        A model of the same layers, compiled as the given one was, and what was counted in its weights.

    Raises:
        EdgeError: the model can't be clustered, a pattern matches nothing, the model's weights aren't finite, or the examples
            don't fit.
    """
    check_inputs(model, dataset, validation)
    tf_keras.utils.set_random_seed(config.fine_tuning.seed)  # tfmot's random start draws from it, and layers that draw numbers
    clustered = copy_model(model)
    choices = choose_layers(copy_model(model), config)
    count_steps(dataset, config.fine_tuning)  # an empty dataset is an error before k-means
    patterns = [
        (kernel, share(kernel.numpy(), choice.clusters, choice.per_channel, config))
        for choice in choices
        if choice.clustered
        for kernel in _variables(clustered, choice)
    ]
    held = held_patterns(clustered, {choice.layer for choice in choices if choice.clustered})
    fine_tune(
        clustered, dataset, config.fine_tuning, compiled_like=model, callbacks=[KeepPatterns([*patterns, *held])], validation=validation
    )
    check_trained(clustered.weights, f"model {model.name!r}, clustered", config.fine_tuning)
    result = copy_model(clustered)  # without the state of the optimizer
    compile_like(result, model, input_batches(model, dataset, config.fine_tuning).take(1))
    return result, ClusteringReport(config=config, layers=_count(model, result, choices))


def _variables(model: tf_keras.Model, choice: Choice) -> list[tf.Variable]:
    weights = model.get_layer(choice.layer).weights
    return [weights[place] for place in choice.kernels]


def _count(before: tf_keras.Model, after: tf_keras.Model, choices: Sequence[Choice]) -> tuple[ClusteredLayer, ...]:
    layers = []
    for choice in choices:
        if not after.get_layer(choice.layer).weights:
            continue
        old, new = ([v.numpy() for v in _variables(model, choice)] for model in (before, after))
        layers.append(
            ClusteredLayer(
                layer=choice.layer,
                type=choice.type,
                weights=sum(v.size for v in new),
                clusters=choice.clusters if choice.clustered else None,
                per_channel=choice.clustered and choice.per_channel,
                values_before=max((distinct_values(v, choice.per_channel) for v in old), default=0),
                values=max((distinct_values(v, choice.per_channel) for v in new), default=0),
                zeros_before=sum(int((v == 0).sum()) for v in old),
                zeros=sum(int((v == 0).sum()) for v in new),
                reason=choice.reason,
            )
        )
    return tuple(layers)

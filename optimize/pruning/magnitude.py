"""Prune single weights, blocks or m of n while fine-tuning, then take the wrappers off."""

import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras

from tfx_edge.optimize.fine_tuning import count_steps, fine_tune, input_batches
from tfx_edge.optimize.finite import check_trained
from tfx_edge.optimize.held_patterns import held_patterns
from tfx_edge.optimize.model_copy import compile_like, copy_model, largest_difference
from tfx_edge.optimize.pruning.selection import Choice, choose_layers
from tfx_edge.optimize.pruning.sensitivity import scan_kernels, with_targets
from tfx_edge.optimize.pruning.smallest import zero_smallest
from tfx_edge.optimize.pruning.sparsity import report_sparsity
from tfx_edge.optimize.pruning.wrapper import wrap_layers
from tfx_edge.optimize.technique_inputs import check_inputs
from tfx_edge.optimize.weight_pattern import KeepPatterns
from tfx_edge.schemas import EdgeError, PruningConfig, SparsityReport


def zero_weights(
    model: tf_keras.Model, dataset: tf.data.Dataset, config: PruningConfig, validation: tf.data.Dataset | None = None
) -> tuple[tf_keras.Model, SparsityReport]:
    """Makes the smallest weights of the selected layers zero while the rest learns to do without them.

    Magnitude pruning (Zhu and Gupta 2017, https://arxiv.org/abs/1710.01878) with tfmot's implementation.

    Args:
        model: Keras 2, functional or Sequential, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: how sparse which layers become, and how the fine-tuning goes.
        validation: examples that aren't trained on, for early stopping, as `dataset`; see `fine_tune`.

    Returns:
        A model of the same layers, compiled as the given one was, and what was counted in its weights.

    Raises:
        EdgeError: the model can't be pruned, a pattern matches nothing, the model's weights aren't finite, or the examples
            don't fit.
    """
    check_inputs(model, dataset, validation)
    tf_keras.utils.set_random_seed(config.fine_tuning.seed)  # layers that draw numbers may seed themselves when they are made
    copy = copy_model(model)
    choices = choose_layers(copy, config)
    sensitivity = None
    if config.sensitivity is not None:
        sensitivity = scan_kernels(model, dataset, choices, config, config.sensitivity)
        choices = with_targets(choices, sensitivity)
    steps = count_steps(dataset, config.fine_tuning)
    wrapped = wrap_layers(copy, {choice.layer: choice.target for choice in choices if choice.pruned}, config, steps)
    batch = input_batches(model, dataset, config.fine_tuning).take(1)
    _check_equal(model, wrapped, batch)
    held = held_patterns(wrapped, {choice.layer for choice in choices if choice.pruned})
    fine_tune(
        wrapped,
        dataset,
        config.fine_tuning,
        compiled_like=model,
        callbacks=[tfmot.sparsity.keras.UpdatePruningStep(), KeepPatterns(held)],
        validation=validation,
    )
    pruned = _unwrapped(wrapped, model, choices, config)
    compile_like(pruned, model, batch)
    check_trained(pruned.weights, f"model {model.name!r}, pruned", config.fine_tuning)
    return pruned, report_sparsity(pruned, choices, config, sensitivity)


def _check_equal(model: tf_keras.Model, wrapped: tf_keras.Model, batch: tf.data.Dataset) -> None:
    """A layer that keeps state outside of its weights would lose it in the copy, and the result would be another model."""
    inputs, _ = next(iter(batch))
    difference = largest_difference(model(inputs), wrapped(inputs))
    if not difference <= 1e-5:
        raise EdgeError(
            f"model {model.name!r}: wrapped for pruning, its outputs differ by {difference:.3g} on the first examples, expected 0; "
            "a layer keeps state outside of its weights and config"
        )


def _unwrapped(wrapped: tf_keras.Model, model: tf_keras.Model, choices: tuple[Choice, ...], config: PruningConfig) -> tf_keras.Model:
    """A fresh twin of the original model with the trained weights.

    tfmot's strip_pruning alone gives layers that belong to several models, so that `layer.output` fails.
    """
    stripped = tfmot.sparsity.keras.strip_pruning(wrapped)
    pruned = copy_model(model)
    for choice in choices:
        weights = stripped.get_layer(choice.layer).get_weights()
        for place in choice.prunable if choice.pruned else ():
            weights[place] = zero_smallest(weights[place], choice.target, config.granularity)
        pruned.get_layer(choice.layer).set_weights(weights)
    return pruned

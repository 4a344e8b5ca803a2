"""Take filters out, then fine-tune what is left."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
import tf_keras

from tfx_edge.optimize.fine_tuning import fine_tune, input_batches
from tfx_edge.optimize.finite import check_trained
from tfx_edge.optimize.held_patterns import held_patterns
from tfx_edge.optimize.macs import count_macs
from tfx_edge.optimize.model_copy import compile_like, copy_model, largest_difference
from tfx_edge.optimize.pruning.filters.channels import Channels, follow_channels
from tfx_edge.optimize.pruning.filters.groups import Group, group_filters
from tfx_edge.optimize.pruning.filters.ranking import rank_filters, smallest
from tfx_edge.optimize.pruning.filters.removal import smaller_model, zeroed_weights
from tfx_edge.optimize.pruning.sensitivity import Unit, Weights, scan
from tfx_edge.optimize.technique_inputs import check_inputs
from tfx_edge.optimize.weight_pattern import KeepPatterns
from tfx_edge.schemas import EdgeError, FilterReport, Filters, LayerFilters, PruningConfig, SensitivityReport


def remove_filters(
    model: tf_keras.Model,
    dataset: tf.data.Dataset,
    config: PruningConfig,
    granularity: Filters,
    validation: tf.data.Dataset | None = None,
) -> tuple[tf_keras.Model, FilterReport]:
    """Takes the least important filters out of convolutions and units out of Dense layers, and trains the rest.

    Li et al. 2017 (https://arxiv.org/abs/1608.08710): once, by the norm of the kernel, then fine-tuning. Layers whose outputs are
    added lose the same filters. Where a layer's channels can't be followed, it is left and the report says why.

    Args:
        model: Keras 2, functional or Sequential, inputs named as the features; stays as it is.
        dataset: one pass over the examples, one at a time, as `fine_tune` takes it.
        config: which layers lose how much, and how the fine-tuning goes.
        granularity: what ranks the filters.
        validation: examples that aren't trained on, for early stopping, as `dataset`; see `fine_tune`.

    Returns:
        A smaller model with layers of the same names, compiled as the given one was, and what was removed.

    Raises:
        EdgeError: as `prune` does.
    """
    check_inputs(model, dataset, validation)
    tf_keras.utils.set_random_seed(config.fine_tuning.seed)
    copy = copy_model(model)
    channels = follow_channels(copy)
    scores = rank_filters(copy, channels, granularity.criterion)
    groups, left = group_filters(copy, channels, config, scores)
    batch = input_batches(model, dataset, config.fine_tuning).take(1)
    multiple, shares, sensitivity = granularity.multiple_of, [group.target for group in groups], None
    if config.sensitivity is not None:
        units = [_unit(copy, channels, group, scores) for group in groups]
        sensitivity = scan(model, dataset, units, config, config.sensitivity)
        shares = [layer.proposed for layer in sensitivity.layers]
    removed = frozenset[int]().union(*(smallest(g, scores, share, multiple) for g, share in zip(groups, shares, strict=True)))
    if not removed and config.sensitivity is None:
        raise EdgeError(
            f"model {model.name!r}: no filter goes at the sparsity asked for with multiple_of {multiple}, so nothing would be pruned; "
            "raise the sparsity, lower Filters.multiple_of, or leave the Pruner out"
        )
    smaller = smaller_model(copy, channels, removed)
    _check_equal(copy, smaller, zeroed_weights(copy, channels, removed), batch)
    report = _report(model, smaller, channels, left, config, sensitivity)
    fine_tune(
        smaller, dataset, config.fine_tuning, compiled_like=model, callbacks=[KeepPatterns(held_patterns(smaller))], validation=validation
    )
    compile_like(smaller, model, batch)
    check_trained(smaller.weights, f"model {model.name!r}, pruned", config.fine_tuning)
    return smaller, report


def _unit(model: tf_keras.Model, channels: Channels, group: Group, scores: Mapping[int, float]) -> Unit:
    """A group for the scan: a share of its filters as zeros."""
    weights = sum(np.prod(model.get_layer(name).weights[0].shape) for name in group.layers)

    def pruned(share: float) -> Weights:
        return zeroed_weights(model, channels, smallest(group, scores, share))

    return Unit(group.layers[0], int(weights), pruned)


def _check_equal(copy: tf_keras.Model, smaller: tf_keras.Model, zeroed: Weights, batch: tf.data.Dataset) -> None:
    """Compares the smaller model with the whole one whose filters are zero: a channel that was followed wrongly shows here."""
    for name, weights in zeroed.items():
        copy.get_layer(name).set_weights(weights)
    inputs, _ = next(iter(batch))
    expected = copy(inputs)
    difference = largest_difference(expected, smaller(inputs))
    largest = max(float(tf.reduce_max(tf.abs(output))) for output in tf.nest.flatten(expected))
    if not difference <= 1e-4 * max(1.0, largest):
        raise EdgeError(
            f"model {copy.name!r}: without filters its outputs differ by {difference:.3g} from those with the filters at zero, expected 0; "
            "a layer depends on its input's shape or keeps state outside of its weights and config: leave out what feeds it"
        )


def _report(
    model: tf_keras.Model,
    smaller: tf_keras.Model,
    channels: Channels,
    left: Mapping[str, str],
    config: PruningConfig,
    sensitivity: SensitivityReport | None,
) -> FilterReport:
    layers = []
    for name in (layer.name for layer in model.layers if layer.name in channels.filters):
        before, after = len(channels.filters[name]), smaller.get_layer(name).output.shape[-1]
        none = f"nothing of its {before} filters could go at this sparsity" if before == after else ""
        reason = left.get(name, none)
        kind = type(model.get_layer(name)).__name__
        layers.append(LayerFilters(layer=name, type=kind, filters=before, kept=after, pruned=not reason, reason=reason))
    return FilterReport(
        config=config,
        layers=tuple(layers),
        parameters_before=model.count_params(),
        parameters_after=smaller.count_params(),
        macs_before=_macs(model),
        macs_after=_macs(smaller),
        sensitivity=sensitivity,
    )


def _macs(model: tf_keras.Model) -> int | None:
    try:
        return sum(count_macs(model).values())
    except EdgeError:  # a shape that is known only when the model runs
        return None

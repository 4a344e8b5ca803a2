"""What a model loses when one layer at a time is pruned, without training (Li et al. 2017, https://arxiv.org/abs/1608.08710)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf
import tf_keras
from numpy.typing import NDArray

from tfx_edge.optimize.fine_tuning import input_batches, training_loss
from tfx_edge.optimize.model_copy import compile_arguments, copy_model
from tfx_edge.optimize.pruning.allocation import allocate
from tfx_edge.optimize.pruning.selection import Choice
from tfx_edge.optimize.pruning.smallest import zero_smallest
from tfx_edge.schemas import (
    EdgeError,
    LayerSensitivity,
    PruningConfig,
    SensitivityPoint,
    SensitivityReport,
    SensitivityScan,
)

Weights = Mapping[str, Sequence[NDArray[Any]]]


@dataclass(frozen=True)
class Unit:
    """What is pruned together: a layer, or layers whose filters go together.

    Attributes:
        name: of the layer, or the first.
        weights: elements that count for the sparsity.
        prune: sparsity to what layers' weights become, by layer name.
    """

    name: str
    weights: int
    prune: Callable[[float], Weights]


def scan(
    model: tf_keras.Model, dataset: tf.data.Dataset, units: Sequence[Unit], config: PruningConfig, settings: SensitivityScan
) -> SensitivityReport:
    """Prunes each unit to each sparsity and measures loss and metrics on a sample; the same data give the same table.

    Args:
        model: compiled, or `config.fine_tuning` names a loss; stays as it is.
        dataset: single examples, as `fine_tune` takes them; the first `settings.examples` are the sample.
        units: what to prune.
        config: the target, and how to read the dataset.
        settings: sparsities and sample size.

    Raises:
        EdgeError: no loss is known, or the data don't fit the model.
    """
    copy = copy_model(model)
    copy.compile(**{**compile_arguments(model), "loss": training_loss(model, config.fine_tuning)})
    sample = dataset.take(settings.examples)
    batches = list(input_batches(model, sample, config.fine_tuning))
    examples = sum(int(tf.shape(tf.nest.flatten(label)[0])[0]) for _, label in batches)
    if not examples:
        raise EdgeError(f"split {config.fine_tuning.split!r}: no examples to measure the layers' sensitivity on; expected at least one")

    def measure() -> dict[str, float]:
        copy.reset_metrics()
        for inputs, label in batches:
            values = copy.test_on_batch(inputs, label, reset_metrics=False, return_dict=True)
        return {name: float(value) for name, value in values.items()}

    before = measure()
    tables = []
    for unit in units:
        points = []
        for sparsity in settings.sparsities:
            changed = unit.prune(sparsity)
            kept = {name: copy.get_layer(name).get_weights() for name in changed}
            _set(copy, changed)
            after = {name: value - before[name] for name, value in measure().items()}
            _set(copy, kept)
            points.append(SensitivityPoint(sparsity=sparsity, loss=after.pop("loss"), metrics=after))
        tables.append(points)
    sizes = [unit.weights for unit in units]
    proposed = allocate(sizes, [[(p.sparsity, p.loss) for p in points] for points in tables], config.target_sparsity)
    return SensitivityReport(
        examples=examples,
        loss=before.pop("loss"),
        metrics=before,
        target_sparsity=config.target_sparsity,
        layers=tuple(
            LayerSensitivity(layer=unit.name, weights=unit.weights, points=tuple(points), proposed=sparsity)
            for unit, points, sparsity in zip(units, tables, proposed, strict=True)
        ),
    )


def scan_kernels(
    model: tf_keras.Model, dataset: tf.data.Dataset, choices: Sequence[Choice], config: PruningConfig, settings: SensitivityScan
) -> SensitivityReport:
    """`scan` over the layers whose kernels are to be pruned; see there."""

    def unit(choice: Choice) -> Unit:
        weights = model.get_layer(choice.layer).get_weights()

        def pruned(sparsity: float) -> Weights:
            zeroed = [zero_smallest(w, sparsity, config.granularity) if i in choice.prunable else w for i, w in enumerate(weights)]
            return {choice.layer: zeroed}

        return Unit(choice.layer, sum(weights[place].size for place in choice.prunable), pruned)

    return scan(model, dataset, [unit(choice) for choice in choices if choice.pruned], config, settings)


def with_targets(choices: Sequence[Choice], report: SensitivityReport) -> tuple[Choice, ...]:
    """The choices with the sparsities that a scan proposed."""
    proposed = {layer.layer: layer.proposed for layer in report.layers}
    return tuple(replace(choice, target=proposed.get(choice.layer, choice.target)) for choice in choices)


def _set(model: tf_keras.Model, weights: Weights) -> None:
    for name, values in weights.items():
        model.get_layer(name).set_weights(values)

"""Which layers are factorized, at which rank, and why the others are not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import tf_keras

from tfx_edge.optimize.frozen import FROZEN, is_frozen
from tfx_edge.optimize.layer_calls import LayerCall, layer_calls
from tfx_edge.optimize.layer_patterns import UNSELECTED, check_patterns, is_selected
from tfx_edge.optimize.low_rank.factors import Array, channel_matrices, rank_for, spatial_matrix
from tfx_edge.schemas import EdgeError, EnergyRank, LowRankConfig, MacBudget

Method = Literal["svd", "spatial", "tucker2"]


@dataclass(frozen=True)
class Candidate:
    """A layer with weights, and how it could be factorized.

    Attributes:
        layer: the Keras layer.
        method: None where it can't be, or isn't to be.
        reason: why, then.
        calls: of the layer, where it has a method all of one size.
    """

    layer: tf_keras.layers.Layer
    method: Method | None
    reason: str
    calls: tuple[LayerCall, ...] = ()

    @property
    def positions(self) -> int:
        """How often its kernel is applied to one example."""
        return sum(_places(call.output_shapes[0]) for call in self.calls)

    @cached_property
    def spectra(self) -> tuple[Array, ...]:
        """The singular values whose ranks are chosen: of one matrix, or with Tucker-2 of the input and the output channels'."""
        kernel = np.asarray(self.layer.kernel.numpy(), np.float64)
        if self.method == "tucker2":
            matrices: tuple[Array, ...] = channel_matrices(kernel)
        else:
            matrices = (spatial_matrix(kernel) if self.method == "spatial" else kernel.reshape(kernel.shape[-2:]),)
        return tuple(np.asarray(np.linalg.svd(matrix, compute_uv=False), np.float64) for matrix in matrices)

    @property
    def weights(self) -> int:
        """Elements of its kernel."""
        kernel = getattr(self.layer, "kernel", None)
        return 0 if kernel is None else int(kernel.shape.num_elements())


@dataclass(frozen=True)
class Ranks:
    """The ranks chosen for a candidate, none where it is left.

    Attributes:
        ranks: see `LayerFactorization.ranks`.
        weights: elements of the factors, or of the kernel where it is left.
        macs: multiply-accumulates for one example.
    """

    ranks: tuple[int, ...]
    weights: int
    macs: int


def find_candidates(model: tf_keras.Model, config: LowRankConfig) -> tuple[Candidate, ...]:
    """Every layer with weights, in the model's order.

    Args:
        model: flat, functional.
        config: patterns, and the method for Conv2D.

    Raises:
        EdgeError: a pattern matches no layer.
    """
    names = [layer.name for layer in model.layers]
    check_patterns("layers", config.layers, names, model.name)
    calls: dict[str, list[LayerCall]] = {name: [] for name in names}
    for call in layer_calls(model):
        calls[call.layer.name].append(call)
    return tuple(_candidate(layer, calls[layer.name], config) for layer in model.layers if layer.weights)


def choose_ranks(candidates: Sequence[Candidate], config: LowRankConfig) -> list[Ranks]:
    """The ranks of all candidates.

    Raises:
        EdgeError: even rank 1 everywhere doesn't fit the budget.
    """
    if isinstance(config.rank, EnergyRank):
        return [_ranks(candidate, config.rank.energy, config.min_saving) for candidate in candidates]
    return _within(candidates, config.rank, config.min_saving)


def _within(candidates: Sequence[Candidate], budget: MacBudget, min_saving: float) -> list[Ranks]:
    """The highest common energy that fits, by bisection: more energy never takes fewer multiplications."""
    selected = [candidate for candidate in candidates if candidate.method is not None]
    now = sum(candidate.weights * candidate.positions for candidate in selected)

    def at(energy: float) -> list[Ranks]:
        return [_ranks(candidate, energy, min_saving) for candidate in candidates]

    def share(ranks: Sequence[Ranks]) -> float:
        return sum(r.macs for c, r in zip(candidates, ranks, strict=True) if c.method is not None) / now

    low, high = 0.0, 1.0
    if not selected:
        return at(high)
    if share(at(low)) > budget.share:
        raise EdgeError(
            f"rank.share {budget.share}: even at rank 1 the selected layers keep {share(at(low)):.3g} of their multiplications; "
            "raise the share, or select more layers"
        )
    for _ in range(24):  # to 6e-8 of the energy
        middle = (low + high) / 2
        low, high = (middle, high) if share(at(middle)) <= budget.share else (low, middle)
    return at(low)


def _candidate(layer: tf_keras.layers.Layer, calls: Sequence[LayerCall], config: LowRankConfig) -> Candidate:
    method, reason = _method(layer, config)
    sizes = {call.output_shapes for call in calls}
    if method is not None and len(sizes) > 1:
        method, reason = None, f"it is called on inputs of {len(sizes)} sizes"
    return Candidate(layer, method, reason, tuple(calls))


def _method(layer: tf_keras.layers.Layer, config: LowRankConfig) -> tuple[Method | None, str]:
    kind = type(layer)
    if not is_selected(layer.name, config.layers):
        return None, UNSELECTED.format("layers")
    if is_frozen(layer):
        return None, FROZEN
    if kind not in (tf_keras.layers.Dense, tf_keras.layers.Conv2D):
        return None, f"only Dense and Conv2D are factorized, it is a {kind.__name__}"
    if layer.kernel_constraint is not None:
        return None, "its kernel has a constraint, which factors can't keep"
    if kind is tf_keras.layers.Dense:
        return "svd", ""
    if layer.groups > 1:
        return None, f"its {layer.groups} groups of channels have a kernel each"
    if layer.data_format != "channels_last":
        return None, f"its data_format is {layer.data_format}, expected channels_last"
    return ("svd", "") if layer.kernel_size == (1, 1) else (config.conv, "")


def _ranks(candidate: Candidate, energy: float, min_saving: float) -> Ranks:
    """The lowest ranks that keep an energy, or none where these don't save enough."""
    left = Ranks((), candidate.weights, candidate.weights * candidate.positions)
    if candidate.method is None:
        return left
    shape = tuple(candidate.layer.kernel.shape)
    height, width = shape[:2] if len(shape) == 4 else (1, 1)
    inputs, outputs = shape[-2:]
    ranks = tuple(rank_for(values, energy) for values in candidate.spectra)
    if candidate.method == "svd":
        weights = ranks[0] * (inputs + outputs)
        macs = weights * candidate.positions
    elif candidate.method == "spatial":
        column, row = height * inputs * ranks[0], width * ranks[0] * outputs
        weights = column + row
        macs = column * _positions_of_column(candidate) + row * candidate.positions
    else:
        into, core, out = inputs * ranks[0], height * width * ranks[0] * ranks[1], ranks[1] * outputs
        weights = into + core + out
        macs = into * _positions_before(candidate) + (core + out) * candidate.positions
    saves = max(weights / left.weights, macs / left.macs) <= 1 - min_saving
    return Ranks(ranks, weights, macs) if saves else left


def _positions_before(candidate: Candidate) -> int:
    """How often a 1x1 kernel in front of the layer is applied: at every position of its input."""
    return sum(_places(call.input_shapes[0]) for call in candidate.calls)


def _positions_of_column(candidate: Candidate) -> int:
    """How often the column is applied: strided down, but at every position across."""
    return sum((call.output_shapes[0][1] or 1) * (call.input_shapes[0][2] or 1) for call in candidate.calls)


def _places(shape: Sequence[int | None]) -> int:
    return math.prod(size or 1 for size in shape[1:-1])

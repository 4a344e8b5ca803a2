"""AdaRound: each weight is rounded up or down so that its layer's output errs least.

For a weight w with scale s the integer is floor(w / s) + h, where h = clip(1.2 sigmoid(v) - 0.1, 0, 1) is learned: v starts where
h is the fraction that rounding cuts off, Adam lowers the squared error of the layer's output after its activation, and a term
1 - |2h - 1|^b, whose b falls from 20 to 2, drives h to 0 or 1: Nagel et al. 2020, "Up or Down? Adaptive Rounding for
Post-Training Quantization", https://arxiv.org/abs/2004.10568, equations 21 to 25.

Other than there, each output channel's error counts relative to that of rounding to nearest, so that one regularization suits all
layers, and a channel keeps rounding to nearest where what was learned is no better on inputs held out.

The result is a float model: each weight moves just so far that rounding to nearest gives the learned integer. The largest weight
of a scale stays, and with it the scale; zeros stay zeros, so a pruned layer stays pruned.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.constants import read_constants, replace_constants
from tfx_edge.litert.corrections.operators import Operator, pairs, weighted_operators
from tfx_edge.litert.corrections.products import from_matrix, product, row_count, to_matrix, to_rows
from tfx_edge.litert.corrections.quantized import Integers, integers
from tfx_edge.litert.corrections.rounding import Problem, learn
from tfx_edge.litert.corrections.tensors import batches, take
from tfx_edge.litert.weights import sharing_operators
from tfx_edge.schemas.corrections import AdaRound, CorrectedLayer

_INSIDE = 0.49  # of a step from its integer at most, so that no rounding error tips a weight
_NEAR = 0.4999  # a weight farther than this from its integer is moved, too: in float32 it may be half a step from it, a tie
_END = 1e-3  # a weight this near the largest integer sets the scale

Rows = NDArray[np.float32]


def ada_round(
    float_model: bytes, quantize: Callable[[bytes], bytes], examples: Mapping[str, NDArray[Any]], config: AdaRound
) -> tuple[bytes, tuple[CorrectedLayer, ...]]:
    """Learns the rounding of every layer whose weights become integers.

    Args:
        float_model: a float flatbuffer.
        quantize: makes a quantized flatbuffer of a float one, with the ranges of `float_model`, the same for each call.
        examples: `[n, ...]` by feature name.
        config: how to learn.

    Returns:
        The flatbuffer with other weights, and what was done to each weighted operator, or why nothing.

    Raises:
        EdgeError: there are no examples, or they don't fit the model.
    """
    examples = take(examples, config.examples)
    found, left = weighted_operators(inspect.parse(float_model))
    clustered = set(sharing_operators(float_model))
    originals = read_constants(inspect.parse(float_model))
    report = [CorrectedLayer(kind=config.kind, op=op, tensor=name, skipped=why) for (op, name), why in left.items()]
    model, quantized = float_model, quantize(float_model)
    for number, op in enumerate(found):
        parsed = inspect.parse(quantized)
        twin = pairs(found, parsed)[number]
        grid = integers(parsed, twin.weights)
        why = _reason(op, grid, originals, clustered)
        if why is not None or grid is None:
            report.append(CorrectedLayer(kind=config.kind, op=op.kind, tensor=op.name, skipped=why))
            continue
        seed = (config.seed, number)
        weights = originals[op.weights]
        wanted_inputs, width = _rows(float_model, op, weights.shape, examples, config.rows, seed)
        inputs = wanted_inputs
        if config.inputs == "quantized":
            inputs, _ = _rows(quantized, twin, weights.shape, examples, config.rows, seed)
        bias = None if op.bias is None else originals.get(op.bias)
        learned, after = _learn(op, weights, grid, (wanted_inputs, inputs), width, bias, config, seed)
        tried = replace_constants(model, {op.weights: _moved(weights, learned, grid)})
        requantized = quantize(tried)
        got = integers(inspect.parse(requantized), pairs(found, inspect.parse(requantized))[number].weights)
        if got is None or not np.array_equal(got.values, learned):
            why = "the quantizer makes other integers of the learned weights"
            report.append(CorrectedLayer(kind=config.kind, op=op.kind, tensor=op.name, skipped=why))
            continue
        model, quantized = tried, requantized
        report.append(CorrectedLayer(kind=config.kind, op=op.kind, tensor=op.name, before=1.0, after=after))
    return model, tuple(report)


def _reason(op: Operator, grid: Integers | None, originals: Mapping[int, NDArray[Any]], clustered: set[tuple[str, str]]) -> str | None:
    if grid is None:
        return "it stays float, or its weights have scales a block"
    if op.weights not in originals or originals[op.weights].dtype != np.float32:
        return "its weights aren't float32"
    if op.limits is None:
        return "its fused activation clips to no limits"
    if op.shared:
        return "its weights are read more than once"
    return "its weights share values (clustering), which learned rounding would part" if (op.kind, op.name) in clustered else None


def _learn(
    op: Operator,
    weights: NDArray[np.float32],
    grid: Integers,
    inputs: tuple[Rows, Rows],
    width: int,
    bias: NDArray[Any] | None,
    config: AdaRound,
    seed: tuple[int, int],
) -> tuple[NDArray[Any], float]:
    """The learned integers, and their error on inputs held out over that of rounding to nearest.

    `inputs` are those of the layer in the float model and the quantized one.
    """
    scale = np.broadcast_to(grid.scale, weights.shape)
    real = weights / scale
    limit = 2 ** (grid.bits - 1) - 1
    fixed = (weights == 0) | (np.abs(real) > limit - _END) | (scale == 0)

    def matrix(values: NDArray[Any]) -> NDArray[Any]:
        return to_matrix(op, values, width)

    groups, outputs, _ = matrix(weights).shape
    offset = np.zeros((groups, 1, outputs), np.float32) if bias is None else bias.reshape(groups, 1, outputs)
    wanted = product(inputs[0], matrix(weights)) + offset
    low, high = op.limits or (-np.inf, np.inf)
    problem = Problem(
        inputs=inputs[1],
        wanted=np.clip(wanted, low, high),
        bias=offset,
        limits=(low, high),
        real=matrix(real).astype(np.float32),
        nearest=matrix(grid.values).astype(np.float32),
        fixed=matrix(fixed),
        scale=matrix(scale).astype(np.float32),
    )
    learned, after = learn(problem, config, np.random.default_rng(seed))
    return from_matrix(op, learned, weights.shape).astype(grid.values.dtype), after


def _moved(weights: NDArray[np.float32], learned: NDArray[Any], grid: Integers) -> NDArray[np.float32]:
    """The nearest weights that round to the learned integers."""
    same = np.abs(weights / grid.scale - learned) < _NEAR
    moved = np.clip(weights, (learned - _INSIDE) * grid.scale, (learned + _INSIDE) * grid.scale)
    return np.where(same, weights, moved).astype(np.float32)


def _rows(
    model: bytes, op: Operator, shape: tuple[int, ...], examples: Mapping[str, NDArray[Any]], limit: int, seed: tuple[int, int]
) -> tuple[Rows, int]:
    """Rows of a layer's input, as many of each batch, and the size of the input's last axis; the same rows with the same seed."""
    generator = np.random.default_rng(seed)
    count = min(len(values) for values in examples.values())
    taken, width = [], 0
    for batch in batches(model, examples, [op.input], "the model whose rounding is learned"):
        values = batch[op.input]
        width = values.shape[-1]
        rows = row_count(op, values, shape)
        share = min(rows, max(1, limit * len(values) // count))
        taken.append(to_rows(op, values, shape, np.sort(generator.choice(rows, share, replace=False))))
    every = np.concatenate(taken, axis=1)
    return every[:, :: -(-every.shape[1] // limit)], width

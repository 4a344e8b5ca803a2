"""The optimization inside AdaRound: up or down for each weight of one layer, in NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas.corrections import AdaRound

_STRETCH, _SHIFT = 1.2, -0.1  # the rectified sigmoid reaches 0 and 1
_WARM_UP = 0.2  # of the steps, before weights are driven to their integers
_SHARP, _SOFT = 20.0, 2.0
_HELD_OUT = 4  # one row of as many

Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """One layer as products of matrices (`products`).

    Attributes:
        inputs: `[g, r, k]`, as the quantized layer gets them.
        wanted: `[g, r, o]`, the float layer's output after its activation.
        bias: `[g, 1, o]`.
        limits: what the activation clips to.
        real: `[g, o, k]`, weights over their scale.
        nearest: the same, rounded by the quantizer.
        fixed: weights that keep that.
        scale: of each weight.
    """

    inputs: Array
    wanted: Array
    bias: Array
    limits: tuple[float, float]
    real: Array
    nearest: Array
    fixed: Array
    scale: Array

    def errors(self, integers: Array, rows: slice | Array) -> Array:
        """Squared error `[g, o]` of the output, summed over rows."""
        squares: Array = self._error(integers, rows)[0] ** 2
        total: Array = squares.sum(axis=1)
        return total

    def gradient(self, integers: Array, rows: Array) -> Array:
        """Of the squared error by the integers, `[g, o, k]`, over twice the number of rows."""
        error, inside = self._error(integers, rows)
        slope: Array = (error * inside).transpose(0, 2, 1) @ self.inputs[:, rows] * self.scale / len(rows)
        return slope

    def _error(self, integers: Array, rows: slice | Array) -> tuple[Array, Array]:
        found = self.inputs[:, rows] @ (integers * self.scale).transpose(0, 2, 1) + self.bias
        low, high = self.limits
        return np.clip(found, low, high) - self.wanted[:, rows], (found >= low) & (found <= high)


def learn(problem: Problem, config: AdaRound, generator: np.random.Generator) -> tuple[Array, float]:
    """Learns integers.

    Args:
        problem: the layer.
        config: how many steps, how large.
        generator: draws the rows of each step.

    Returns:
        The integers `[g, o, k]`, and their squared error on rows held out over that of rounding to nearest; a channel in which
        this isn't below 1 keeps the nearest.
    """
    everything = np.arange(problem.inputs.shape[1])
    held = everything[::_HELD_OUT]
    rows = np.setdiff1d(everything, held) if len(everything) > _HELD_OUT else everything
    below = np.floor(problem.real)
    up = _steps(problem, below, rows, config, generator) >= 0.5
    learned = np.where(problem.fixed, problem.nearest, below + up)
    better = problem.errors(learned, held) < problem.errors(problem.nearest, held)
    learned = np.where(better[:, :, None], learned, problem.nearest)
    nearest = problem.errors(problem.nearest, held).sum()
    return learned, float(problem.errors(learned, held).sum() / nearest) if nearest > 0 else 1.0


def _steps(problem: Problem, below: Array, rows: Array, config: AdaRound, generator: np.random.Generator) -> Array:
    """How far up each weight went, from 0 to 1."""
    fraction = np.clip(problem.real - below, 0.01, 0.99)
    v = np.log((fraction - _SHIFT) / (_STRETCH + _SHIFT - fraction)).astype(np.float32)
    first = problem.errors(problem.nearest, rows) / len(rows)
    share = np.divide(1, first, out=np.zeros_like(first), where=first > 0)[:, :, None]
    momentum, velocity = np.zeros_like(v), np.zeros_like(v)
    warm = int(_WARM_UP * config.iterations)
    for step in range(config.iterations):
        up, slope = _rectified(v)
        integers = np.where(problem.fixed, problem.nearest, below + up)
        picked = generator.choice(rows, min(config.batch_size, len(rows)), replace=False)
        gradient = problem.gradient(integers, picked) * share
        if step >= warm:
            done = (step - warm) / max(1, config.iterations - warm)
            b = _SOFT + (_SHARP - _SOFT) * (1 - done)
            centred = 2 * up - 1
            gradient -= config.regularization * 2 * b * np.sign(centred) * np.abs(centred) ** (b - 1)
        gradient *= slope
        momentum = 0.9 * momentum + 0.1 * gradient
        velocity = 0.999 * velocity + 0.001 * gradient**2
        rate = config.learning_rate * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        v -= (rate * momentum / (np.sqrt(velocity) + 1e-8)).astype(np.float32)
    return _rectified(v)[0]


def _rectified(v: Array) -> tuple[Array, Array]:
    """The rectified sigmoid and its slope."""
    sigmoid = 1 / (1 + np.exp(-v))
    stretched = _STRETCH * sigmoid + _SHIFT
    return np.clip(stretched, 0, 1), np.where((stretched > 0) & (stretched < 1), _STRETCH * sigmoid * (1 - sigmoid), 0)

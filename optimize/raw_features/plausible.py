"""Raw features made up so that what Transform makes of them is as the model knows it.

A model with its preprocessing inside takes millimetres or seconds, of which nothing is known but what Transform's graph makes of them.
Random numbers would come out far from what the model was calibrated for, and a model that saturates tests nothing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.optimize.float_model import FloatModel
from tfx_edge.schemas import TensorSpec

_Bounds = Mapping[str, tuple[float, float]]
_SIDE = np.geomspace(1e-3, 1e9, 241)  # 20 values a power of ten
_ZOOMS, _POINTS = 5, 40  # each finds the ends 40 times as closely


def plausible_features(function: FloatModel, bounds: _Bounds, count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Makes up raw features.

    For each float feature the interval is searched in which the transformed features move and lie within their bounds, or closest to
    them, one number standing for all values of the feature and the others in the middle of theirs. Values are uniform in it. Integers
    are 0 and 1.

    Args:
        function: from raw to transformed features, as `preprocessing` gives it.
        bounds: smallest and largest value of transformed features by name; others are free.
        count: how many examples.
        seed: of the values.

    Returns:
        `[count, ...]` by raw feature name, in the dtypes of the function's inputs.
    """
    generator = np.random.default_rng(seed)
    middle = {spec.name: 0.0 for spec in function.signature.inputs}
    made: dict[str, NDArray[Any]] = {}
    for spec in function.signature.inputs:
        shape = (count, *(size or 1 for size in spec.shape[1:]))
        if np.dtype(spec.dtype).kind != "f":
            made[spec.name] = generator.integers(0, 2, shape).astype(spec.dtype)
            continue
        low, high = _interval(function, spec, middle, bounds)
        middle[spec.name] = (low + high) / 2
        made[spec.name] = generator.uniform(low, high, shape).astype(spec.dtype)
    return made


def _interval(function: FloatModel, spec: TensorSpec, middle: Mapping[str, float], bounds: _Bounds) -> tuple[float, float]:
    grid = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])
    for _ in range(_ZOOMS):
        apart, moves = _results(function, spec, grid, middle, bounds)
        if not moves.any():
            return 0.0, 1.0
        [best] = np.nonzero(moves & (apart == apart[moves].min()))
        first, last = best[0], best[-1]
        low, high = grid[first], grid[last]
        before, behind = grid[max(first - 1, 0)], grid[min(last + 1, len(grid) - 1)]
        grid = np.unique(np.concatenate([np.linspace(*ends, _POINTS) for ends in ((before, low), (low, high), (high, behind))]))
    return float(low), float(high)


def _results(
    function: FloatModel, spec: TensorSpec, grid: NDArray[Any], middle: Mapping[str, float], bounds: _Bounds
) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each number of a grid, how far the transformed features lie from their bounds, and whether any moves there."""
    numbers = {name: np.full(len(grid), value) for name, value in middle.items()} | {spec.name: grid}
    features = {
        s.name: np.broadcast_to(
            numbers[s.name].astype(s.dtype).reshape(-1, *(1 for _ in s.shape[1:])), (len(grid), *(size or 1 for size in s.shape[1:]))
        )
        for s in function.signature.inputs
    }
    apart, moves = np.zeros(len(grid)), np.zeros(len(grid), bool)
    for name, values in function.predict(features).items():
        flat = np.nan_to_num(values.reshape(len(grid), -1).astype(np.float64), nan=1e30, posinf=1e30, neginf=-1e30)
        if name in bounds:
            low, high = bounds[name]
            apart += np.maximum(np.maximum(low - flat, flat - high), 0).sum(axis=1)
        steps = np.any(flat[1:] != flat[:-1], axis=1)
        moves[1:] |= steps
        moves[:-1] |= steps
    return apart, moves

"""Sharing a target among layers, so that those that mind least give most."""

import itertools
from collections.abc import Sequence

Curve = Sequence[tuple[float, float]]


def allocate(sizes: Sequence[int], curves: Sequence[Curve], target: float) -> tuple[float, ...]:
    """Chooses each layer's sparsity for the least total loss at a sparsity of all together.

    Losses are taken to add up, and between the measured points to lie on the lower convex hull, which makes this a fractional
    knapsack: giving the target to the flattest pieces of all curves first is exact.

    Args:
        sizes: of each layer, in weights.
        curves: of each layer: (sparsity, loss), sparsities ascending and above 0. A loss below an earlier one counts as that one,
            and below zero as zero: what looks like a gain is noise of the sample.
        target: sparsity of all, by weights; at most the least of the curves' last sparsities.

    Returns:
        A sparsity for each layer.

    >>> allocate([100, 100], [[(0.5, 0.0), (0.9, 0.1)], [(0.5, 1.0), (0.9, 2.0)]], target=0.4)
    (0.8, 0.0)
    """
    pieces = [(slope, layer, length) for layer, curve in enumerate(curves) for slope, length in _hull(sizes[layer], curve)]
    left = target * sum(sizes)
    chosen = [0.0] * len(sizes)
    for _, layer, length in sorted(pieces, key=lambda piece: piece[:2]):
        taken = min(length, left)
        chosen[layer] += taken
        left -= taken
    return tuple(round(zeros / size, 6) for zeros, size in zip(chosen, sizes, strict=True))


def _hull(size: int, curve: Curve) -> list[tuple[float, float]]:
    """The lower convex hull from (0, 0) on, as (loss per weight, weights) of each piece."""
    points, highest = [(0.0, 0.0)], 0.0
    for sparsity, loss in curve:
        highest = max(highest, loss)
        points.append((sparsity * size, highest))
    hull = points[:1]
    while hull[-1] != points[-1]:
        x, y = hull[-1]
        hull.append(min((p for p in points if p[0] > x), key=lambda p: ((p[1] - y) / (p[0] - x), -p[0])))
    return [((y1 - y0) / (x1 - x0), x1 - x0) for (x0, y0), (x1, y1) in itertools.pairwise(hull)]

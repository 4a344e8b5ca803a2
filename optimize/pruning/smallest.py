"""Setting the smallest weights of a kernel to zero, in whatever units a granularity has."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas.granularity import Block, Granularity, MOfN


def zeros_wanted(size: int, sparsity: float) -> int:
    """How many of a tensor's elements are zero at a sparsity; tfmot's arithmetic, which rounds in float32 and keeps at least one."""
    return size - max(int(np.round(np.float32(size) * (np.float32(1) - np.float32(sparsity)))), 1)


def zero_smallest(kernel: NDArray[Any], sparsity: float, granularity: Granularity) -> NDArray[Any]:
    """Brings a kernel to a sparsity by magnitude; one that is there already is returned as it is.

    tfmot keeps every weight (or block) as large as the smallest that it means to keep, so a kernel with equal magnitudes, as a
    clustered one, ends far below the target; here the first of equal ones go.

    Args:
        kernel: in Keras' layout; rank 2 for blocks, rank 2 or 4 with the input channels second to last for m of n.
        sparsity: the target, 0 to 1; with m of n, which has its own, unused.
        granularity: the units.

    Returns:
        The same shape with at least `zeros_wanted` units of zeros (m of n: at least `zeros` in each group).
    """
    if isinstance(granularity, MOfN):
        return _zero_in_groups(kernel, granularity)
    if isinstance(granularity, Block):
        rows, columns = kernel.shape
        tiles = kernel.reshape(rows // granularity.inputs, granularity.inputs, columns // granularity.outputs, granularity.outputs)
        magnitudes = np.abs(tiles).max((1, 3)) if granularity.pooling == "maximum" else np.abs(tiles).mean((1, 3))
        keep = ~_smallest(magnitudes, sparsity)
        pruned: NDArray[Any] = (tiles * keep[:, None, :, None]).reshape(kernel.shape).astype(kernel.dtype)
        return pruned
    pruned = kernel.copy()
    pruned[_smallest(np.abs(kernel), sparsity)] = 0
    return pruned


def _smallest(magnitudes: NDArray[Any], sparsity: float) -> NDArray[np.bool_]:
    """Marks the smallest, the first of equal ones: as many as wanted, or those that are zero where these are more."""
    flat = magnitudes.ravel()
    marked: NDArray[np.bool_] = flat == 0
    wanted = zeros_wanted(flat.size, sparsity)
    if marked.sum() < wanted:
        marked = np.zeros(flat.size, bool)
        marked[np.argsort(flat, kind="stable")[:wanted]] = True
    shaped: NDArray[np.bool_] = marked.reshape(magnitudes.shape)
    return shaped


def _zero_in_groups(kernel: NDArray[Any], granularity: MOfN) -> NDArray[Any]:
    rows = np.moveaxis(kernel, -2, -1)  # input channels last, as in a flatbuffer
    channels, group = rows.shape[-1], granularity.group
    padding = [(0, 0)] * (rows.ndim - 1) + [(0, -channels % group)]  # the last group may be short: what it lacks counts as zero
    groups = np.pad(rows, padding).reshape(*rows.shape[:-1], -1, group)
    order = np.argsort(np.abs(groups), axis=-1, kind="stable")
    np.put_along_axis(groups, order[..., : granularity.zeros], 0, axis=-1)
    pruned: NDArray[Any] = np.moveaxis(groups.reshape(*rows.shape[:-1], -1)[..., :channels], -1, -2).astype(kernel.dtype)
    return pruned

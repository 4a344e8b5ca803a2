"""Truncated SVD, spatial and Tucker-2 factorizations of kernels, and the ranks that keep a share of the energy.

All run in float64. A kernel is `[inputs, outputs]` (Dense) or `[height, width, inputs, outputs]` (Conv2D).
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rank_for(singular_values: Array, energy: float) -> int:
    """The lowest rank whose truncated SVD keeps a share of a matrix's energy, the sum of its squared singular values.

    Args:
        singular_values: in falling order.
        energy: the share.

    >>> rank_for(np.array([3.0, 1.0, 0.0]), 0.9), rank_for(np.array([3.0, 1.0, 0.0]), 0.91)
    (1, 2)
    """
    kept = np.cumsum(singular_values**2)
    return 1 + int(np.count_nonzero(kept < energy * kept[-1] * (1 - 1e-12)))


def svd(matrix: Array, rank: int) -> tuple[Array, Array]:
    """The product of two matrices of a rank that is nearest to a matrix `[m, n]` (Eckart and Young 1936).

    Returns:
        `[m, rank]` and `[rank, n]`, the singular values shared out evenly, which keeps both factors' weights of one size.
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    root = np.sqrt(values[:rank])
    return left[:, :rank] * root, root[:, None] * right[:rank]


def spatial_matrix(kernel: Array) -> Array:
    """`[height, width, inputs, outputs]` as `[height * inputs, width * outputs]`, whose rank is that of `spatial`."""
    height, width, inputs, outputs = kernel.shape
    return kernel.transpose(0, 2, 1, 3).reshape(height * inputs, width * outputs)


def spatial(kernel: Array, rank: int) -> tuple[Array, Array]:
    """A column and a row whose convolutions one after the other are nearest to a kernel's (Jaderberg et al. 2014, arXiv:1405.3866).

    Returns:
        `[height, 1, inputs, rank]` and `[1, width, rank, outputs]`.
    """
    height, width, inputs, outputs = kernel.shape
    column, row = svd(spatial_matrix(kernel), rank)
    return column.reshape(height, inputs, rank)[:, None], row.reshape(rank, width, outputs).transpose(1, 0, 2)[None]


def channel_matrices(kernel: Array) -> tuple[Array, Array]:
    """A kernel unfolded by its input channels `[inputs, -1]` and by its output channels `[outputs, -1]`."""
    return tuple(np.moveaxis(kernel, axis, 0).reshape(kernel.shape[axis], -1) for axis in (2, 3))  # type: ignore[return-value]


def tucker2(kernel: Array, ranks: tuple[int, int]) -> tuple[Array, Array, Array]:
    """A kernel between fewer channels, with the matrices to and from them (Kim et al. 2016, arXiv:1511.06530).

    The matrices hold the leading singular vectors of both unfoldings (truncated higher-order SVD, De Lathauwer et al. 2000).

    Returns:
        `[inputs, ranks[0]]`, the core `[height, width, ranks[0], ranks[1]]`, and `[ranks[1], outputs]`.
    """
    into, out = (
        np.linalg.svd(unfolded, full_matrices=False)[0][:, :rank] for unfolded, rank in zip(channel_matrices(kernel), ranks, strict=True)
    )
    core = np.einsum("hwio,ir,os->hwrs", kernel, into, out)
    return into, core, out.T

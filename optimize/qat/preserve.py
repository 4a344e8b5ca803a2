"""Which kernels keep their zeros and shared values while they are trained."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tfx_edge.schemas import QatConfig

Kept = tuple[Literal["sparsity", "clusters"], ...]

_SPARSITY: Kept = ("sparsity",)
_CLUSTERS: Kept = ("clusters",)
_INT8_VALUES = 255  # with narrow range; a kernel of more can't keep them apart
_SPARSE = 0.05  # share of zeros from which on they are no accident
_SHARED = 0.9  # distinct values by weights; of a large float kernel, few weights are equal by chance


@dataclass(frozen=True)
class Holds:
    """What a kernel holds.

    Attributes:
        sparsity: zeros that are no accident.
        clusters: values that its weights share, in the whole or by channel.
        one_scale: the shared values are few in the whole kernel, so that one scale for all channels keeps them few as integers.
    """

    sparsity: bool
    clusters: bool
    one_scale: bool


def holds(kernel: NDArray[Any]) -> Holds:
    """Looks at a kernel; its last axis is the output channel.

    >>> holds(np.array([[0.0, 0.5, 0.5], [0.0, 0.5, 0.25], [0.25, 0.0, 0.25]]))
    Holds(sparsity=True, clusters=True, one_scale=True)
    """
    nonzero = kernel[kernel != 0]
    values = np.unique(nonzero).size
    clusters = 0 < values <= _SHARED * nonzero.size
    return Holds(bool(np.mean(kernel == 0) >= _SPARSE), clusters, clusters and values <= _INT8_VALUES)


def kept(kernel: NDArray[Any], config: QatConfig) -> Kept:
    """What is kept of a kernel: what the config names, or with `auto`, what it holds."""
    found = holds(kernel) if config.preserve == "auto" else None
    zeros = found.sparsity if found else config.preserve in ("sparsity", "sparsity_and_clusters")
    shared = found.clusters if found else config.preserve in ("clusters", "sparsity_and_clusters")
    return (*_SPARSITY[:zeros], *_CLUSTERS[:shared])

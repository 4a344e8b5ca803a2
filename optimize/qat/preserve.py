"""Which kernels keep their zeros and shared values while they are trained."""

from typing import Any, Literal

from numpy.typing import NDArray

from tfx_edge.optimize.held_patterns import holds
from tfx_edge.schemas import QatConfig

Kept = tuple[Literal["sparsity", "clusters"], ...]

_SPARSITY: Kept = ("sparsity",)
_CLUSTERS: Kept = ("clusters",)


def kept(kernel: NDArray[Any], config: QatConfig) -> Kept:
    """What is kept of a kernel: what the config names, or with `auto`, what it holds."""
    found = holds(kernel) if config.preserve == "auto" else None
    zeros = found.sparsity if found else config.preserve in ("sparsity", "sparsity_and_clusters")
    shared = found.clusters if found else config.preserve in ("clusters", "sparsity_and_clusters")
    return (*_SPARSITY[:zeros], *_CLUSTERS[:shared])

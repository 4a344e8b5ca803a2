"""The Keras layers that take the place of one layer, with the factors of its kernel as their kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tf_keras

from tfx_edge.optimize.low_rank.choice import Candidate
from tfx_edge.optimize.low_rank.factors import Array, spatial, svd, tucker2


@dataclass(frozen=True)
class Factored:
    """What a layer became.

    Attributes:
        layers: to be called one after the other, the last with the layer's own name, bias and activation.
        kernels: of each.
        bias: of the last; None where the layer has none.
        error: norm of the reconstructed kernel's difference over the kernel's norm.
    """

    layers: tuple[tf_keras.layers.Layer, ...]
    kernels: tuple[Array, ...]
    bias: Any
    error: float

    def set_weights(self) -> None:
        """Fills the layers, once they are built."""
        for layer, kernel in zip(self.layers, self.kernels, strict=True):
            layer.set_weights([kernel] if not layer.use_bias else [kernel, self.bias])


def factored(candidate: Candidate, ranks: Sequence[int], prefix: str) -> Factored:
    """Factorizes a layer.

    Args:
        candidate: with a method.
        ranks: as many as the method has.
        prefix: starts the names of the new layers but the last.
    """
    layer = candidate.layer
    kernel = np.asarray(layer.kernel.numpy(), np.float64)
    config = layer.get_config()
    inner = {"activation": None, "use_bias": False, "bias_regularizer": None, "bias_constraint": None, "activity_regularizer": None}
    kind = type(layer)
    if kind is tf_keras.layers.Dense:
        kernels: tuple[Array, ...] = svd(kernel, ranks[0])
        changes: list[dict[str, Any]] = [{**inner, "units": ranks[0]}, {}]
        reconstructed = kernels[0] @ kernels[1]
    elif candidate.method == "svd":
        left, right = svd(kernel[0, 0], ranks[0])
        kernels = left[None, None], right[None, None]
        changes = [{**inner, "filters": ranks[0]}, _pointwise()]
        reconstructed = (left @ right)[None, None]
    elif candidate.method == "spatial":
        kernels = spatial(kernel, ranks[0])
        height, width = layer.kernel_size
        (down, across), (dilation_down, dilation_across) = layer.strides, layer.dilation_rate
        changes = [
            {**inner, "filters": ranks[0], "kernel_size": (height, 1), "strides": (down, 1), "dilation_rate": (dilation_down, 1)},
            {"kernel_size": (1, width), "strides": (1, across), "dilation_rate": (1, dilation_across)},
        ]
        reconstructed = np.einsum("hir,wro->hwio", kernels[0][:, 0], kernels[1][0])
    else:
        into, core, out = tucker2(kernel, (ranks[0], ranks[1]))
        kernels = into[None, None], core, out[None, None]
        changes = [{**inner, **_pointwise(), "filters": ranks[0]}, {**inner, "filters": ranks[1]}, _pointwise()]
        reconstructed = np.einsum("ir,hwrs,so->hwio", into, core, out)
    suffixes = ("in", "core") if len(changes) == 3 else ("in",)
    names = [*(f"{prefix}_{suffix}" for suffix in suffixes), layer.name]
    layers = tuple(kind.from_config({**config, **change, "name": name}) for change, name in zip(changes, names, strict=True))
    norm = float(np.linalg.norm(kernel))
    error = float(np.linalg.norm(kernel - reconstructed)) / norm if norm else 0.0
    return Factored(layers, kernels, layer.bias.numpy() if layer.use_bias else None, min(error, 1.0))


def _pointwise() -> dict[str, Any]:
    return {"kernel_size": (1, 1), "strides": (1, 1), "dilation_rate": (1, 1)}

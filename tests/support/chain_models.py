"""Chains of dense layers of which a test knows what int8 does to each: those that lose nothing, and those that ruin the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray
from tiny_flatbuffers import Graph, Op, Tensor, pack

WIDTH = 12
OUTLIER = 300.0  # times what the other channels take: an int8 step is 8 times their standard deviation, one of int16 a thirtieth

Layer = tuple[str, NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Chain:
    """A model and examples: dense layers behind each other, each named by its output tensor `<name>_tensor`."""

    flatbuffer: bytes
    features: dict[str, NDArray[Any]]
    outputs: NDArray[np.float64]

    def error(self, predictions: NDArray[Any]) -> float:
        """Mean absolute error against what the formula gives in double precision."""
        return float(np.abs(predictions - self.outputs).mean())


def chain(layers: Sequence[Layer], examples: int = 300) -> Chain:
    """Dense layers behind each other, from `x` `[n, 12]` to the last layer's output."""
    at = Tensor("x", "float32", (None, WIDTH))
    first, ops = at, []
    x = np.random.default_rng(11).normal(size=(examples, WIDTH)).astype(np.float32)
    values = x.astype(np.float64)
    for name, kernel, bias in layers:
        weights = Tensor(f"{name}_w", "float32", kernel.T.shape, value=kernel.T)
        y = Tensor(name, "float32", (None, len(bias)))
        ops.append(Op("FULLY_CONNECTED", (at, weights, Tensor(f"{name}_b", "float32", bias.shape, value=bias)), (y,), _options()))
        at, values = y, values @ kernel + bias
    return Chain(pack([Graph("serving_default", (first,), (at,), tuple(ops))]), {"x": x}, values)


def benign(name: str, seed: int) -> Layer:
    """A rotation: everything stays of the size that it has."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)))
    return name, rotation.astype(np.float32), np.zeros(WIDTH, np.float32)


def outlier(names: tuple[str, str], seed: int) -> tuple[Layer, Layer]:
    """Two layers with a tensor between them that a channel of no use stretches: it stays bad until neither of them is int8."""
    (_, up, bias), (_, down, _) = benign("", seed), benign("", seed + 1)
    up[:, 0] *= OUTLIER
    down[0] = 0
    return (names[0], up, bias), (names[1], down, bias)


def narrow_head(name: str, seed: int) -> Layer:
    """A regression around 1,000 with a standard deviation of 1: steps of int8, which must reach 0, are 4 wide."""
    kernel = np.random.default_rng(seed).normal(size=(WIDTH, 1)) / np.sqrt(WIDTH)
    return name, kernel.astype(np.float32), np.full(1, 1_000, np.float32)


def _options() -> Any:
    return schema.FullyConnectedOptionsT()

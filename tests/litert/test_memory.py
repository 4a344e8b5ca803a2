"""Peak memory: weights and intermediate results show in it, to within what a page and a heap make of them."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from looping import looping
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.memory import peak_memory
from tfx_edge.schemas import EdgeError

MIB = 2**20
X: dict[str, Any] = {"x": np.zeros((3, 1), np.float32)}


def widening(width: int, batch: int | None = None) -> bytes:
    """x `[n, 1]` to y `[n, 1]`, the sum of `width` products with weights of 1, which all exist at one time."""
    x, y = Tensor("x", "float32", (batch, 1)), Tensor("y", "float32", (batch, 1))
    wide, weights = Tensor("wide", "float32", (batch, width)), Tensor("weights", "float32", (1, width), value=np.ones((1, width)))
    total = schema.ReducerOptionsT()
    total.keepDims = True
    ops = (
        Op("MUL", (x, weights), (wide,), schema.MulOptionsT()),
        Op("SUM", (wide, Tensor("axis", "int32", (1,), value=np.array([1]))), (y,), total),
    )
    return pack([Graph("serving_default", (x,), (y,), ops)])


def test_memory_grows_with_weights_and_intermediate_results() -> None:
    small, large = peak_memory(widening(8), X), peak_memory(widening(4 * MIB), X)
    assert 0 < small < 4 * MIB
    assert 0.95 * 2 * 16 * MIB <= large <= 4 * 16 * MIB  # 16 MiB of weights, as much of products, and copies that XNNPACK may make


def test_a_fixed_batch_takes_memory_for_all_its_examples() -> None:
    assert peak_memory(widening(MIB, batch=8), X) >= 0.95 * (4 + 8 * 4) * MIB


def test_the_model_must_run() -> None:
    with pytest.raises(EdgeError, match=r"^memory: the model \(200 bytes\): LiteRT can't load it"):
        peak_memory(widening(8)[:200], X)
    with pytest.raises(EdgeError, match="^memory: the model's first prediction didn't finish within 4 s"):
        peak_memory(looping(np.inf), X, time_limit_s=4)
    with pytest.raises(EdgeError, match="no example"):
        peak_memory(widening(8), {"x": X["x"][:0]})

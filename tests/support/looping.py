"""Flatbuffers that take as long as one likes."""

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack


def looping(turns: float, batch: int = 1) -> bytes:
    """x `[batch, 1]` to y: adds 1 to each number until the first is at least `turns`; infinity never ends."""

    def tensor(name: str, dtype: str = "float32", shape: tuple[int, ...] = (batch, 1)) -> Tensor:
        return Tensor(name, dtype, shape)

    x, y = tensor("x"), tensor("y")
    loop = schema.WhileOptionsT()
    loop.condSubgraphIndex, loop.bodySubgraphIndex = 1, 2
    main = Graph("serving_default", (x,), (y,), (Op("WHILE", (x,), (y,), loop),))
    before, first, less = tensor("before"), tensor("first", shape=(1,)), tensor("less", "bool", (1,))
    row = Tensor("row", "int32", (1,), value=np.array([0]))
    corner = tensor("corner", shape=(1, 1))
    ops = (
        Op("GATHER", (before, row), (corner,), schema.GatherOptionsT()),
        Op("RESHAPE", (corner, Tensor("shape", "int32", (1,), value=np.array([1]))), (first,)),
        Op("LESS", (first, Tensor("limit", "float32", (), value=np.array(turns))), (less,)),
    )
    condition = Graph(None, (before,), (less,), ops)
    old, new = tensor("old"), tensor("new")
    body = Graph(None, (old,), (new,), (Op("ADD", (old, Tensor("one", "float32", (), value=np.array(1))), (new,), schema.AddOptionsT()),))
    return pack([main, condition, body])

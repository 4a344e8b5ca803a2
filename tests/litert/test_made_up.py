"""Inputs made up for golden vectors."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.made_up import made_up
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import TensorRanges

TABLE = np.arange(24, dtype=np.float32).reshape(12, 2)


def graph(x: Tensor, *ops: Op) -> bytes:
    return pack([Graph("serving_default", (x,), ops[-1].outputs, ops)])


def gather(x: Tensor, rows: int, name: str = "row") -> Op:
    options = schema.GatherOptionsT()
    return Op("GATHER", (Tensor(f"{name}_t", "float32", (rows, 2), value=TABLE[:rows]), x), (Tensor(name, "float32", (None, 2)),), options)


def cast(x: Tensor, to: str = "float32") -> Op:
    return Op("CAST", (x,), (Tensor(f"as_{to}", to, x.shape),), schema.CastOptionsT())


def values(model: bytes, ranges: TensorRanges | None = None) -> Any:
    [made] = made_up(model, Runner(model), ranges, 400, 0).values()
    return made


def test_an_index_reaches_every_row_of_its_table_and_no_other() -> None:
    x = Tensor("x", "int64", (None,))
    assert set(values(graph(x, gather(x, 12)))) == set(range(12))


def test_of_two_tables_the_smaller_bounds_the_index_also_behind_a_cast() -> None:
    x = Tensor("x", "int64", (None,))
    narrow = cast(x, "int32")
    model = pack(
        [Graph("serving_default", (x,), (a := gather(x, 12)).outputs + (b := gather(narrow.outputs[0], 5, "few")).outputs, (a, narrow, b))]
    )
    assert set(values(model)) == set(range(5))


def test_integers_that_are_cast_lie_in_the_calibrated_range_of_what_they_become() -> None:
    x = Tensor("x", "int32", (None, 3))
    model = graph(x, cast(x))
    ranges = RangeCollector(model)({"x": np.random.default_rng(0).integers(40, 61, (300, 3)).astype(np.int32)})
    assert set(values(model, ranges).ravel()) == set(range(40, 61))


def test_where_nothing_tells_what_integers_may_be_they_are_0_or_1() -> None:
    x = Tensor("x", "int32", (None, 3))
    assert set(values(graph(x, cast(x))).ravel()) == {0, 1}
    index = Tensor("x", "int64", (None,))
    also = Op(
        "ADD",
        (index, Tensor("one", "int64", (1,), value=np.array([1], np.int64))),
        (Tensor("next", "int64", (None,)),),
        schema.AddOptionsT(),
    )
    model = pack([Graph("serving_default", (index,), (row := gather(index, 12)).outputs + also.outputs, (row, also))])
    assert set(values(model)) == {0, 1}, "what is added to may be the index of a smaller table"


def test_bytes_take_every_value() -> None:
    x = Tensor("x", "uint8", (None, 3))
    made = values(graph(x, cast(x)))
    assert made.dtype == np.uint8 and made.min() < 10 and made.max() > 245


@pytest.mark.parametrize("depth", [1, 7])
def test_a_class_lies_below_the_depth_of_its_one_hot_encoding(depth: int) -> None:
    x = Tensor("x", "int32", (None,))
    ends = [Tensor(name, "float32", (), value=np.float32(value)) for name, value in (("on", 1), ("off", 0))]
    options = schema.OneHotOptionsT()
    options.axis = -1
    op = Op("ONE_HOT", (x, Tensor("depth", "int32", (), value=np.int32(depth)), *ends), (Tensor("y", "float32", (None, depth)),), options)
    assert set(values(graph(x, op))) == set(range(depth))

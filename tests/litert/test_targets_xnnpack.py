"""What XNNPACK takes of a model: read from LiteRT's list of nodes, and right for any way in which it cuts a graph."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from target_models import classifier, deep_classifier, dense, float_classifier, float_ended_classifier, model, top_k
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.targets.xnnpack import delegated, xnnpack_share
from tfx_edge.schemas import EdgeError


def diamond() -> bytes:
    """An operator that XNNPACK lacks between two that it takes, of which the second reads the first's output too."""
    x, a, b, c, y = (Tensor(name, "float32", (1, 4)) for name in "xabcy")
    ops = [Op("ABS", (x,), (a,)), Op("FLOOR_MOD", (a, a), (b,)), Op("ADD", (a, b), (c,), schema.AddOptionsT()), Op("NEG", (c,), (y,))]
    return model((x,), (y,), ops)


def sixteen_bits() -> bytes:
    x, logits = Tensor("x", "int16", (1, 8), 0.01), Tensor("logits", "int16", (1, 4), 0.01)
    y = Tensor("y", "int16", (1, 4), 0.01)
    return model((x,), (y,), [dense(x, logits), Op("ADD", (logits, logits), (y,), schema.AddOptionsT())])


def hybrid() -> bytes:
    """Float in and out, weights in int8: dynamic range."""
    x, y = Tensor("x", "float32", (1, 8)), Tensor("y", "float32", (1, 4))
    weights = Tensor("w", "int8", (4, 8), 0.02, 0, np.random.default_rng(0).integers(-127, 127, (4, 8)))
    return model((x,), (y,), [Op("FULLY_CONNECTED", (x, weights, None), (y,), schema.FullyConnectedOptionsT())])


MAKERS = {
    float_classifier: (1.0, {}),
    classifier: (0.5, {"SOFTMAX": "not taken with inputs int8"}),
    float_ended_classifier: (0.75, {"SOFTMAX": "not taken with inputs int8"}),
    deep_classifier: (10 / 11, {"SOFTMAX": "not taken with inputs int8"}),
    hybrid: (1.0, {}),
    diamond: (0.75, {"FLOOR_MOD": "not taken with inputs float32, float32"}),
    sixteen_bits: (
        0.0,
        {"FULLY_CONNECTED": "not taken with inputs int16, int8 constant, int32 constant", "ADD": "not taken with inputs int16, int16"},
    ),
    top_k: (0.5, {"SOFTMAX": "not taken with inputs int8", "TOPK_V2": "not taken with inputs int8, int32 constant"}),
}


@pytest.mark.parametrize("make", MAKERS)
def test_the_share_is_of_the_models_operators_and_the_others_are_told(make) -> None:
    share, left = MAKERS[make]
    found = xnnpack_share(make())
    assert found.measurements == {"xnnpack_share": pytest.approx(share)}
    assert {op.operator: op.reason for op in found.ops if op.runs_on == "LiteRT"} == left
    assert all(op.reason == "" for op in found.ops if op.runs_on == "XNNPACK")
    assert found.tool.startswith("XNNPACK in LiteRT ")


@pytest.mark.parametrize("make", MAKERS)
def test_as_many_are_taken_as_litert_makes_nodes_when_each_gets_its_own(make) -> None:
    interpreter = Interpreter(model_content=make(), experimental_disable_delegate_node_fusion=True)
    interpreter.allocate_tensors()
    nodes = interpreter._get_ops_details()
    single = [node for node in nodes if node["op_name"] == "DELEGATE"]
    taken = delegated(nodes)
    assert len(taken) == len(single)
    assert {int(node["outputs"][0]) for node in single} == {int(nodes[index]["outputs"][0]) for index in taken}


def partitioned(seed: int) -> tuple[list[dict[str, Any]], set[int]]:
    """Random operators, the nodes that LiteRT would list were random groups of neighbours delegated, and those operators."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 15))
    own = [
        {"index": i, "op_name": "OP", "inputs": [100 + i, *rng.choice([-1, *range(i + 1)], rng.integers(0, 4))], "outputs": [i + 1]}
        for i in range(count)
    ]
    group = np.sort(rng.integers(0, 5, count))
    nodes = list(own)
    for number in rng.permutation([1, 3]):
        members = [op for op, of in zip(own, group, strict=True) if of == number]
        made = {op["outputs"][0] for op in members}
        inputs = {t for op in members for t in op["inputs"] if t >= 0} - made
        read_within = {t for op in members for t in op["inputs"]}
        read_outside = {t for op in own if op not in members for t in op["inputs"]}
        outputs = {t for t in made if t in read_outside or t not in read_within}
        if members:
            nodes.append({"index": len(nodes), "op_name": "DELEGATE", "inputs": sorted(inputs), "outputs": sorted(outputs)})
    return nodes, {int(i) for i in np.flatnonzero(np.isin(group, [1, 3]))}


@pytest.mark.parametrize("seed", range(200))
def test_whatever_groups_are_delegated_all_their_operators_are_found(seed: int) -> None:
    nodes, members = partitioned(seed)
    assert delegated(nodes) == members


def test_graphs_beside_the_main_one_do_not_count() -> None:
    x, y = Tensor("x", "float32", (1, 4)), Tensor("y", "float32", (1, 4))
    graphs = [Graph("serving_default", (x,), (y,), (Op("ABS", (x,), (y,)),)), Graph("other", (x,), (y,), (Op("FLOOR_MOD", (x, x), (y,)),))]
    assert xnnpack_share(pack(graphs)).measurements == {"xnnpack_share": 1.0}


def test_a_model_of_no_operators_has_no_share() -> None:
    x = Tensor("x", "float32", (1, 4))
    assert xnnpack_share(model((x,), (x,), [])).measurements == {}


def unloadable() -> bytes:
    x, y = Tensor("x", "float32", (1, 4)), Tensor("y", "float32", (1, 5))
    return model((x,), (y,), [Op("LOGICAL_NOT", (x,), (y,))])


@pytest.mark.parametrize(
    ("flatbuffer", "message"),
    [
        (b"PK", "^not a LiteRT flatbuffer "),
        (classifier()[:900], "^a damaged LiteRT flatbuffer "),
        (unloadable(), "^XNNPACK: LiteRT can't load the model: "),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_line(flatbuffer: bytes, message: str) -> None:
    with pytest.raises(EdgeError, match=message) as raised:
        xnnpack_share(flatbuffer)
    assert "\n" not in str(raised.value)


def test_a_model_that_takes_too_long_is_told() -> None:
    with pytest.raises(EdgeError, match="didn't finish within 0.01 s"):
        xnnpack_share(classifier(), time_limit_s=0.01)

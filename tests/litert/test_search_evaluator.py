"""What measures the candidates of a search, on a model of two outputs."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.collector import Collector
from tfx_edge.litert.plan import apply_plan, make_plan
from tfx_edge.litert.planning import plan_quantization
from tfx_edge.litert.ranges import RangeCollector
from tfx_edge.litert.search import Evaluator
from tfx_edge.schemas import AccuracyTarget, QuantizationConfig, Threshold

X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)


def two_outputs(small: float) -> bytes:
    """`class` is x twice; of `size` the first value is x[0], the second `small` times x[1]."""
    x = Tensor("x", "float32", (None, 2))
    ends = {"class": np.diag([2.0, 2.0]), "size": np.diag([1.0, small])}
    outputs = tuple(Tensor(name, "float32", (None, 2)) for name in ends)
    options = schema.FullyConnectedOptionsT()
    ops = tuple(
        Op("FULLY_CONNECTED", (x, Tensor(f"{y.name}_w", "float32", (2, 2), value=kernel.astype(np.float32)), None), (y,), options)
        for y, kernel in zip(outputs, ends.values(), strict=True)
    )
    return pack([Graph("serving_default", (x,), outputs, ops)])


def warning(model: bytes, looked_at: str) -> str | None:
    ranges = RangeCollector(model)({"x": X})
    quantized = apply_plan(model, make_plan(model, QuantizationConfig(), ranges), ranges)
    return Evaluator(model, {"x": X}, looked_at, lambda predictions: 0.0).unwatched(quantized)


def test_a_value_that_int8_ruins_in_an_output_without_a_threshold_is_told() -> None:
    told = warning(two_outputs(1e-4), "class")
    assert told is not None
    assert told.startswith("output 'size', at which the accuracy target doesn't look: the error of its value 1 is 100% of")


@pytest.mark.parametrize(("small", "looked_at"), [(1e-4, "size"), (0.5, "class"), (0.0, "class")], ids=["looked at", "fine", "constant"])
def test_nothing_is_told_of_outputs_that_are_measured_or_fine(small: float, looked_at: str) -> None:
    assert warning(two_outputs(small), looked_at) is None


def test_the_plan_of_a_search_warns_of_it() -> None:
    model = two_outputs(1e-4)
    target = AccuracyTarget(threshold=Threshold(metric="MeanSquaredError", max_drop=1, output="class"), label_key="y", split="eval")
    evaluate = Evaluator(model, {"x": X}, "class", lambda predictions: 0.0)
    candidates = Candidates(model, lambda flatbuffer: Collector(flatbuffer)({"x": X}))
    planned, _ = plan_quantization(candidates, QuantizationConfig(accuracy_target=target), evaluate=evaluate)
    assert any("output 'size', at which the accuracy target doesn't look" in warning for warning in planned.plan.warnings)

"""Tiny flatbuffers for the checks of targets, and what TensorFlow Lite Micro says of one when it is asked directly."""

import itertools
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.targets import side

WIDTH, CLASSES = 8, 4
# The set-up leaves the tools out only where there are no wheels of them.
needs_tools = pytest.mark.skipif(
    side.find_python("tflite_micro") is None, reason=f"no side environment with the tools: {side.not_installed('tflite_micro')}"
)


def features(count: int = 20, seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(count, WIDTH)).astype(np.float32)}


def constant(name: str, values: Any, dtype: str, scale: float | None = None) -> Tensor:
    values = np.asarray(values)
    return Tensor(name, dtype, values.shape, scale, 0, values)


def dense(x: Tensor, y: Tensor, seed: int = 1, scale: float = 0.02) -> Op:
    """y = W x + b, with weights in the type of x."""
    rng = np.random.default_rng(seed)
    shape = (int(y.shape[-1] or 0), int(x.shape[-1] or 0))
    if x.dtype == "float32":
        weights, bias = constant("w", rng.normal(size=shape), "float32"), constant("b", rng.normal(size=shape[:1]), "float32")
    else:
        weights = constant("w", rng.integers(-100, 100, shape), "int8", scale)
        bias = constant("b", rng.integers(-500, 500, shape[:1]), "int32", scale * float(x.scale or 1))
    return Op("FULLY_CONNECTED", (x, weights, bias), (y,), schema.FullyConnectedOptionsT())


def softmax(x: Tensor, y: Tensor) -> Op:
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    return Op("SOFTMAX", (x,), (y,), options)


def int8_tensors(batch: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Input, logits and probabilities."""
    return (
        Tensor("x", "int8", (batch, WIDTH), 0.03, 3),
        Tensor("logits", "int8", (batch, CLASSES), 0.1, -5),
        Tensor("y", "int8", (batch, CLASSES), 1 / 256, -128),
    )


def classifier(batch: int | None = 1) -> bytes:
    """int8 throughout: a dense layer and a softmax."""
    x, logits, y = int8_tensors(batch)
    return model((x,), (y,), [dense(x, logits), softmax(logits, y)])


def deep_classifier() -> bytes:
    """Dense layers one behind the other, in which XNNPACK's roundings and the reference kernels' come apart."""
    x, _, y = int8_tensors(1)
    hidden = [x, *(Tensor(f"hidden{i}", "int8", (1, 16), 0.023, i) for i in range(9)), Tensor("logits", "int8", (1, CLASSES), 0.1, -5)]
    return model((x,), (y,), [*(dense(a, b, i, 0.0043) for i, (a, b) in enumerate(itertools.pairwise(hidden))), softmax(hidden[-1], y)])


def float_classifier(batch: int | None = 1) -> bytes:
    x, logits, y = (Tensor(n, "float32", (batch, w)) for n, w in (("x", WIDTH), ("logits", CLASSES), ("y", CLASSES)))
    return model((x,), (y,), [dense(x, logits), softmax(logits, y)])


def float_ended_classifier() -> bytes:
    """int8 inside, float input and output."""
    outer, result = Tensor("x", "float32", (1, WIDTH)), Tensor("y", "float32", (1, CLASSES))
    x, logits, y = int8_tensors(1)
    inner = [Op("QUANTIZE", (outer,), (x,)), dense(x, logits), softmax(logits, y), Op("DEQUANTIZE", (y,), (result,))]
    return model((outer,), (result,), inner)


def top_k() -> bytes:
    """The classifier with TOPK_V2 behind it, which neither TensorFlow Lite Micro nor an NPU has, and a dense layer behind that."""
    x, logits, y = int8_tensors(1)
    best, places = Tensor("best", "int8", (1, 2), 1 / 256, -128), Tensor("places", "int32", (1, 2))
    last = Tensor("last", "int8", (1, 3), 0.1, 0)
    ops = [dense(x, logits), softmax(logits, y), Op("TOPK_V2", (y, constant("k", 2, "int32")), (best, places)), dense(best, last)]
    return model((x,), (last,), ops)


def model(inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], ops: Sequence[Op]) -> bytes:
    return pack([Graph("serving_default", inputs, outputs, tuple(ops))])


_ASK = """
import sys
from tflite_micro import runtime
interpreter = runtime.Interpreter.from_file("model.tflite", arena_size=int(sys.argv[1]))
details = interpreter.get_input_details(0)
interpreter.set_input(__import__("numpy").zeros(details["shape"], details["dtype"]), 0)
interpreter.invoke()
interpreter.print_allocations()
"""


def ask_tflm(folder: Path, flatbuffer: bytes, arena_bytes: int) -> int | None:
    """The bytes that TensorFlow Lite Micro says it used of an arena of this size; None where it doesn't run in it."""
    (folder / "model.tflite").write_bytes(flatbuffer)
    python = side.find_python("tflite_micro")
    assert python is not None
    done = subprocess.run([python, "-c", _ASK, str(arena_bytes)], cwd=folder, capture_output=True, text=True, check=False)
    return int(re.findall(r"Arena allocation total (\d+) bytes", done.stderr)[0]) if done.returncode == 0 else None

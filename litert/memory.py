"""How much memory a model takes: what loading it and predicting one example add to a process.

Counted is resident memory at its peak, so the flatbuffer, LiteRT's tensors and XNNPACK's packed weights, and what they need
for a moment only. A heap's own count would miss the pages of the file, and what LiteRT maps past the heap.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from flatbuffers import Builder
from numpy.typing import NDArray

from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.latency import first_example
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import EdgeError


def peak_memory(model: bytes, features: Mapping[str, NDArray[Any]], *, num_threads: int = 1, time_limit_s: float = 120.0) -> int:
    """Bytes that loading a flatbuffer and predicting the first example add at the peak, in a process of its own.

    The process has LiteRT loaded and nothing run before. Linux only.

    Args:
        model: a flatbuffer.
        features: `[n, ...]` each, by feature name; may hold more than the model takes.
        num_threads: threads that LiteRT may use, as many as on the device.
        time_limit_s: seconds for each of two processes: one converts the example, the other measures.

    Raises:
        EdgeError: no examples, this system doesn't tell a peak, or the model can't be loaded, can't predict, kills the process
            or takes too long.
    """
    inputs = call_in_child(_inputs, model, first_example(features), time_limit_s=time_limit_s)
    return call_in_child(_measure, model, inputs, num_threads, time_limit_s=time_limit_s)


def _inputs(note: Note, model: bytes, features: dict[str, NDArray[Any]]) -> tuple[str, dict[str, NDArray[Any]]]:
    """The signature's name, and what to give it; converting takes memory itself, so it isn't done where memory is measured."""
    note("memory: the model's first prediction")
    runner = Runner(model, name="memory: the model")
    runner(features, "the example")
    arrays = runner.raw_inputs(features, "the example")
    return runner.entry.signature, {name: np.repeat(a, runner.batch_size or 1, axis=0) for name, a in arrays.items()}


def _measure(note: Note, model: bytes, inputs: tuple[str, dict[str, NDArray[Any]]], num_threads: int) -> int:
    note("memory: loading the model and predicting one example")
    signature, arrays = inputs
    # What LiteRT and XNNPACK set up once, and the pages of their code, are there whatever the model.
    smallest = Interpreter(model_content=_smallest_model(), num_threads=num_threads)
    smallest.allocate_tensors()
    smallest.invoke()
    del smallest
    _forget_peak()
    before = _status("VmRSS")
    Interpreter(model_content=model, num_threads=num_threads).get_signature_runner(signature)(**arrays)
    # The flatbuffer was there before, and LiteRT reads it where it is.
    return len(model) + max(0, _status("VmHWM") - before)


def _smallest_model() -> bytes:
    """A flatbuffer that adds a number to itself."""
    model, graph, add, code = schema.ModelT(), schema.SubGraphT(), schema.OperatorT(), schema.OperatorCodeT()
    tensors = [schema.TensorT(), schema.TensorT()]
    for tensor in tensors:
        tensor.shape = [1]
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.ADD
    code.version = 1
    add.inputs, add.outputs = [0, 0], [1]
    add.builtinOptionsType, add.builtinOptions = schema.BuiltinOptions.AddOptions, schema.AddOptionsT()
    graph.tensors, graph.inputs, graph.outputs, graph.operators = tensors, [0], [1], [add]
    model.version, model.buffers, model.operatorCodes, model.subgraphs = 3, [schema.BufferT()], [code], [graph]
    builder = Builder(256)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _forget_peak() -> None:
    try:
        _CLEAR_REFS.write_text("5")  # proc(5): the peak of resident memory becomes what is resident now
    except OSError as error:
        raise EdgeError(
            f"memory: this system doesn't count a process's peak ({error}); measure on Linux, or leave this budget out"
        ) from error


_CLEAR_REFS = Path("/proc/self/clear_refs")


def _status(field: str) -> int:
    """Bytes, of a field of /proc/self/status."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024

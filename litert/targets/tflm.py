"""A model in TensorFlow Lite Micro: does it run, does it predict what LiteRT predicts, and in how small an arena."""

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.entry import Entry, find_entry
from tfx_edge.litert.quantization import to_real
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.targets import side
from tfx_edge.litert.targets.outcome import Outcome
from tfx_edge.litert.targets.parity import breaches, differences, step_of
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.target import OpPlacement, Target

MOST_EXAMPLES = 16

_MODULE = "tflite_micro"
_CHILD = Path(__file__).with_name("tflm_child.py")


def run_tflm(model: bytes, target: Target, features: Mapping[str, NDArray[Any]], time_limit_s: float) -> Outcome:
    """Runs up to 16 examples in both runtimes.

    Returns:
        `arena_bytes`, the smallest arena in which the model loads and runs; `arena_used_bytes`, what the interpreter says it used;
        `parity_steps` and `parity_error`, the largest difference to what `Runner` predicts, in steps of a quantized output and as a share
        of an output's largest value.

    Raises:
        EdgeError: LiteRT itself can't run the model on these features.
    """
    python = side.find_python(_MODULE)
    version = side.version(python, _MODULE) if python is not None else None
    if python is None or version is None:
        return Outcome("TensorFlow Lite Micro", reasons=(side.not_installed(_MODULE),))
    tool = f"TensorFlow Lite Micro {version}"
    foreseen = _foreseen(model)
    if foreseen:
        return Outcome(tool, reasons=(foreseen,))

    runner, parsed = Runner(model), inspect.parse(model)
    entry = find_entry(parsed, None, "the flatbuffer")
    inputs, outputs = _by_position(entry, parsed.subgraphs[0])
    size = runner.batch_size or 1
    # What an operator assigned stays in both interpreters, so such a model runs once.
    most = size if entry.state == "reload" else max(MOST_EXAMPLES, size)
    raw = runner.raw_inputs({name: values[:most] for name, values in features.items()})
    count = len(raw[inputs[0]]) // size * size
    if not count:
        return Outcome(tool, reasons=(f"{len(raw[inputs[0]])} examples, where a step of the model takes {size}; give it as many",))
    outputs_there = len(parsed.subgraphs[0].outputs)
    steps = [raw[name][:count].reshape(-1, size, *raw[name].shape[1:]) for name in inputs]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.tflite").write_bytes(model)
        np.savez(folder / "inputs.npz", *steps)
        run = side.run(python, [str(_CHILD), name, str(outputs_there)], folder, time_limit_s)
        if run.status != 0:
            return Outcome(tool, ops=_ops(model, run.stderr), reasons=(_fault(run, time_limit_s),))
        with np.load(folder / "outputs.npz") as arrays:
            got = [arrays[f"arr_{i}"] for i in range(outputs_there)]
        arena = float(json.loads((folder / "arena.json").read_text()))
    used = float(re.findall(r"Arena allocation total (\d+) bytes", run.stderr)[0])
    evaluated = runner({name: values[:count] for name, values in features.items()})
    specs = {spec.name: spec for spec in runner.signature.outputs}
    # Where memory happens to be aligned well the smallest is some bytes below what was used.
    measurements = {"arena_bytes": max(arena, used), "arena_used_bytes": used}
    reasons: list[str] = []
    for output, place in outputs.items():
        step = step_of(parsed, parsed.subgraphs[0].outputs[place])
        found = differences(step, to_real(specs[output], got[place]), evaluated[output])
        measurements |= {name: max(value, measurements.get(name, 0.0)) for name, value in found.items()}
        reasons += breaches(specs[output], found, target)
    return Outcome(tool, measurements, _ops(model, ""), tuple(reasons))


def _foreseen(model: bytes) -> str | None:
    """What TensorFlow Lite Micro would do silently wrong, or fail at with a text that tells nothing."""
    parsed = inspect.parse(model)
    if any(buffer.offset > 1 for buffer in parsed.buffers):
        return "weights lie behind the flatbuffer, where TensorFlow Lite Micro doesn't look; export the model with TFLiteExporter"
    graph = parsed.subgraphs[0]
    for index in (*graph.inputs, *graph.outputs):
        tensor = graph.tensors[index]
        name = tensor.name.decode()
        if tensor.type == schema.TensorType.STRING:
            return f"{name!r} holds text, which TensorFlow Lite Micro has not; map it to numbers in Transform"
        sizes = [] if tensor.shapeSignature is None else [int(d) for d in tensor.shapeSignature]
        if -1 in sizes[1:]:
            return f"{name!r} has the open shape {sizes}, but TensorFlow Lite Micro lays out memory once; export it with fixed shapes"
    return None


def _by_position(entry: Entry, graph: Any) -> tuple[list[str], dict[str, int]]:
    """Names of the inputs in the graph's order, which may be another than the signature's, and the place of each output."""
    if entry.subgraph != 0:
        raise EdgeError(f"signature {entry.signature!r} isn't the main graph, the only one that TensorFlow Lite Micro runs")
    inputs = {index: name for name, index in entry.inputs.items()}
    places = [int(i) for i in graph.outputs]
    return [inputs[int(i)] for i in graph.inputs], {name: places.index(index) for name, index in entry.outputs.items()}


def _fault(run: side.Run, time_limit_s: float) -> str:
    missing = re.search(r"Didn't find op for builtin opcode '(\w+)'", run.stderr)
    if missing:
        return f"TensorFlow Lite Micro has no operator {missing[1]}; replace the layer that uses it"
    prepared = re.search(r"Node (\w+) \(number (\d+)\) failed to (prepare|invoke)", run.stderr)
    if prepared:
        before = [line for line in run.stderr[: prepared.start()].splitlines() if line.strip()]
        why = f": {before[-1].strip():.200}" if before else ""
        return f"TensorFlow Lite Micro can't {prepared[3]} {prepared[1]} (operator {prepared[2]}){why}"
    return run.fault("TensorFlow Lite Micro", time_limit_s)


def _ops(model: bytes, messages: str) -> tuple[OpPlacement, ...]:
    missing = re.findall(r"Didn't find op for builtin opcode '(\w+)'", messages)
    if messages and not missing:
        return ()
    return tuple(
        OpPlacement(
            operator=name,
            count=count,
            runs_on="nowhere" if name in missing else "CPU",
            reason="TensorFlow Lite Micro has no such operator" if name in missing else "",
        )
        for name, count in inspect.operators(model).items()
    )

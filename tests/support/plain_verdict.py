"""The gate's verdict once more, found in the plainest way: LiteRT, NumPy, a loop; nothing of TFMA's and nothing of ours.

A candidate is refused when LiteRT can't load it or run it on all examples as one batch, dies of it or takes too long; when it
needs a newer runtime, or writes to its own constants; when no signature is meant, or it isn't its graph's; when inputs aren't
among the baseline's, or can't hold the examples; when predictions have another shape than the baseline's, or one isn't finite;
when accuracy is too low or too far below the baseline's, over all examples or in a slice, or a slice has too few examples.

Each candidate is run in a fork of a process that has only LiteRT and NumPy, so none can spoil another's verdict.
"""

import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

_RUNTIME = (2, 21, 0)  # the TensorFlow Lite that the installed LiteRT is level with


@dataclass(frozen=True)
class Task:
    """What candidates are judged by.

    Attributes:
        baseline: the float flatbuffer.
        features: `[n, ...]` by name.
        labels: the right classes, `[n]`.
        slices: a value for each example, `[n]`.
        lower_bound: smallest accuracy, as decimal text.
        max_drop: largest loss of accuracy, as decimal text.
        min_examples: in each slice.
    """

    baseline: bytes
    features: Mapping[str, NDArray[Any]]
    labels: NDArray[np.int64]
    slices: NDArray[np.int64]
    lower_bound: str
    max_drop: str
    min_examples: int


class Refused(Exception):
    """Why there is no blessing."""


def plain_verdicts(candidates: Sequence[bytes], task: Task, time_limit_s: float = 20.0) -> list[str | None]:
    """Why each candidate is refused; None for one that is blessed.

    Args:
        candidates: flatbuffers, whatever their state.
        task: what to judge them by.
        time_limit_s: for each.
    """
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "call.pickle").write_bytes(pickle.dumps((list(candidates), vars(task), time_limit_s)))
        subprocess.run([sys.executable, __file__, name], cwd=name, check=True, capture_output=True)
        verdicts: list[str | None] = json.loads((Path(name) / "verdicts.json").read_text())
    return verdicts


def main(folder: Path) -> None:
    """Judges each candidate in a fork."""
    candidates, fields, time_limit_s = pickle.loads((folder / "call.pickle").read_bytes())
    task = Task(**fields)
    verdicts = [_in_fork(candidate, task, folder / "verdict.json", time_limit_s) for candidate in candidates]
    (folder / "verdicts.json").write_text(json.dumps(verdicts))


def _in_fork(candidate: bytes, task: Task, path: Path, time_limit_s: float) -> str | None:
    child = os.fork()
    if child == 0:
        try:
            path.write_text(json.dumps(_verdict(candidate, task)))
        finally:
            os._exit(0)
    deadline = time.monotonic() + time_limit_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return f"killed the interpreter: {signal.Signals(os.WTERMSIG(status)).name}"
            verdict: str | None = json.loads(path.read_text())
            path.unlink()
            return verdict
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "took too long"


def _verdict(candidate: bytes, task: Task) -> str | None:
    baseline, inputs = _predict(task.baseline, task.features)
    try:
        _check_runtime(candidate)
        _check_memory(candidate)
        predictions, reads = _predict(candidate, task.features)
        if not reads <= inputs:
            raise Refused(f"reads {sorted(reads)}, the baseline {sorted(inputs)}")
        if predictions.shape != baseline.shape:
            raise Refused(f"output of shape {predictions.shape}")
        if not np.isfinite(predictions).all():
            raise Refused("NaN or infinity")
        for reason in _accuracy_faults(baseline, predictions, task):
            raise Refused(reason)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes LiteRT raise, it can't be run
        return f"{type(error).__name__}: {error}"
    return None


def _accuracy_faults(baseline: NDArray[Any], candidate: NDArray[Any], task: Task) -> Iterator[str]:
    parts = {"overall": np.full(len(task.labels), True), **{f"slice {s}": task.slices == s for s in np.unique(task.slices)}}
    for part, mask in parts.items():
        n = int(mask.sum())
        if n < task.min_examples:
            yield f"{part}: {n} examples"
        before, after = (Fraction(int((np.argmax(p[mask], 1) == task.labels[mask]).sum()), n) for p in (baseline, candidate))
        if after < Fraction(task.lower_bound):
            yield f"{part}: accuracy {float(after):.4f}"
        if before - after > Fraction(task.max_drop):
            yield f"{part}: accuracy {float(after):.4f}, the baseline's {float(before):.4f}"


def _check_runtime(model: bytes) -> None:
    parsed = schema.Model.GetRootAs(model, 0)
    for i in range(parsed.MetadataLength()):
        if parsed.Metadata(i).Name() == b"min_runtime_version":
            version = bytes(parsed.Buffers(parsed.Metadata(i).Buffer()).DataAsNumpy()).rstrip(b"\0").decode()
            if version and not re.fullmatch(r"\d+(\.\d+)*", version):
                raise Refused(f"needs the runtime {version!r}")
            if version and tuple(map(int, version.split("."))) > _RUNTIME:
                raise Refused(f"needs the runtime {version}")


def _check_memory(model: bytes) -> None:
    """Refuses operators that write where the file's constants are: LiteRT lets them, and what comes of it is a matter of luck."""
    parsed = schema.Model.GetRootAs(model, 0)
    for g in range(parsed.SubgraphsLength()):
        graph = parsed.Subgraphs(g)
        operators = [graph.Operators(o) for o in range(graph.OperatorsLength())]
        written = {operator.Outputs(i) for operator in operators for i in range(operator.OutputsLength())}
        if any(parsed.Buffers(graph.Tensors(i).Buffer()).DataLength() for i in written):
            raise Refused("an operator writes to a constant")


def _predict(model: bytes, features: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], set[str]]:
    """Predictions `[n, ...]` and the names of the inputs."""
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    signatures = interpreter.get_signature_list()
    if len(signatures) != 1 and "serving_default" not in signatures:
        raise Refused(f"signatures {sorted(signatures)}")
    key = next(iter(signatures)) if len(signatures) == 1 else "serving_default"
    run = interpreter.get_signature_runner(key)
    inputs, outputs = run.get_input_details(), run.get_output_details()
    _check_signature(interpreter, inputs, outputs)
    n = len(next(iter(features.values())))
    fed = {name: _quantized(features[name], details) for name, details in inputs.items()}
    [(output, details)] = outputs.items()
    batch = {int(d["shape_signature"][0]) for d in inputs.values() if d["shape_signature"][0] >= 0}
    if not batch:
        return _real(run(**fed)[output], details, n), set(inputs)
    [size] = batch  # fixed: step by step, the last one filled up
    rows = np.minimum(np.arange(math.ceil(n / size) * size), n - 1)
    steps = [run(**{k: v[rows[at : at + size]] for k, v in fed.items()})[output] for at in range(0, len(rows), size)]
    return np.concatenate([_real(s, details, size) for s in steps])[:n], set(inputs)


def _check_signature(interpreter: Interpreter, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    named, there = ([{d["index"] for d in side} for side in sides] for sides in (
        (inputs.values(), outputs.values()), (interpreter.get_input_details(), interpreter.get_output_details())
    ))  # fmt: skip
    if named[0] != there[0] or not named[1] <= there[1]:
        raise Refused("the signature isn't its graph's")


def _quantized(values: NDArray[Any], details: Mapping[str, Any]) -> NDArray[Any]:
    """As the input holds it: the nearest integer, halves to even, the nearest there is beyond the ends."""
    shape, dtype = [int(d) for d in details["shape_signature"][1:]], np.dtype(details["dtype"])
    values = values.reshape(len(values), *shape)
    scales, zero_points = details["quantization_parameters"]["scales"], details["quantization_parameters"]["zero_points"]
    if dtype.kind == "f":
        if dtype.itemsize == 2:
            raise Refused("float16 input")
        return values.astype(dtype)
    if len(scales) != 1:
        raise Refused(f"{dtype} input with {len(scales)} scales")
    with np.errstate(all="ignore"):
        integers = np.round(values.astype(np.float64) / np.float64(scales[0])) + int(zero_points[0])
    if np.isnan(integers).any():
        raise Refused("input that is no number once quantized")
    return np.clip(integers, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def _real(values: NDArray[Any], details: Mapping[str, Any], n: int) -> NDArray[Any]:
    """As numbers, where the output holds integers for them."""
    if values.shape[:1] != (n,):
        raise Refused(f"output of shape {values.shape} for {n} examples")
    scales, zero_points = details["quantization_parameters"]["scales"], details["quantization_parameters"]["zero_points"]
    if values.dtype.kind == "f" or len(scales) == 0:
        return values
    if len(scales) > 1:
        raise Refused(f"output with {len(scales)} scales")
    return (values.astype(np.float64) - int(zero_points[0])) * float(scales[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))

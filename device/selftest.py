"""The self-test of an edge model: its golden inputs through LiteRT, and what comes out beside what the exporter saw come out.

    python -m tfx_edge.device.selftest BUNDLE

Needs LiteRT and NumPy alone, so that it runs where the model will.
"""

import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

FLATBUFFER, GOLDEN = "Format-Serving/tflite", "edge/golden.npz"
ON_DEVICE = "tflite"
"""The flatbuffer in a release's bundle, as devices keep it."""

INPUT, OUTPUT, TOLERANCE, SIGNATURE = "input:", "output:", "tolerance:", "signature"


class SelfTestError(Exception):
    """The test can't be made; one line says why."""


@dataclass(frozen=True)
class Compared:
    """One output over all golden inputs.

    Attributes:
        name: of the output.
        difference: the largest, in what the output holds: real values, or steps of a quantized output.
        tolerance: the largest that passes.
    """

    name: str
    difference: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the output is as the exporter saw it; NaN never is."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return f"{verdict}: output {self.name!r} differs by up to {self.difference:g}, {self.tolerance:g} is allowed"


def selftest(model: bytes, golden: bytes) -> tuple[Compared, ...]:
    """Runs a flatbuffer on golden inputs.

    Args:
        model: the flatbuffer.
        golden: content of `golden.npz`: `signature`, its name; by name `input:<name>` and `output:<name>`, `[runs, ...]` with the
            model's own batch and types behind the first dimension; `tolerance:<name>`, a number.

    Returns:
        Each output, in the order of names.

    Raises:
        SelfTestError: the golden vectors or the model can't be read, or don't fit each other.
    """
    arrays = _arrays(golden)
    inputs, wanted = _named(arrays, INPUT), _named(arrays, OUTPUT)
    tolerances = _named(arrays, TOLERANCE)
    if not inputs or not wanted or set(wanted) != set(tolerances) or SIGNATURE not in arrays:
        raise SelfTestError("golden.npz lacks inputs, outputs, tolerances or the signature; export the model again")
    if len({len(values) for values in (*inputs.values(), *wanted.values())}) != 1:
        raise SelfTestError("golden.npz has inputs and outputs of different numbers of runs; export the model again")
    outputs = run(model, str(arrays[SIGNATURE]), inputs)
    if set(outputs) != set(wanted):
        raise SelfTestError(f"the model's outputs are {sorted(outputs)}, golden.npz has {sorted(wanted)}; they are of two models")
    return tuple(Compared(name, difference(outputs[name], wanted[name]), float(tolerances[name])) for name in sorted(wanted))


def run(model: bytes, signature: str, inputs: Mapping[str, NDArray[Any]], **options: Any) -> dict[str, NDArray[Any]]:
    """Runs a signature once for each entry of its inputs' first dimension, each time from a model loaded anew.

    Args:
        model: the flatbuffer.
        signature: its name.
        inputs: `[runs, ...]` by name, in the model's own types, the batch behind the first dimension.
        options: of LiteRT's interpreter.

    Returns:
        The same for the outputs.

    Raises:
        SelfTestError: LiteRT can't load the model, or run it on these inputs.
    """
    steps: list[dict[str, NDArray[Any]]] = []
    try:
        for i in range(len(next(iter(inputs.values())))):
            runner = Interpreter(model_content=model, **options).get_signature_runner(signature)
            steps.append(runner(**{name: values[i] for name, values in inputs.items()}))
    except (RuntimeError, TypeError, ValueError) as error:
        raise SelfTestError(f"LiteRT can't run the model: {' '.join(str(error).split())}") from error
    return {name: np.stack([step[name] for step in steps]) for name in steps[0]}


def difference(have: NDArray[Any], want: NDArray[Any]) -> float:
    """The largest difference of two arrays; infinite for other shapes or types, NaN where one has NaN and the other not."""
    if have.shape != want.shape or have.dtype.kind != want.dtype.kind:
        return float("inf")
    if have.dtype.kind not in "iuf":
        return 0.0 if np.array_equal(have, want) else float("inf")
    same = (have == want) | (np.isnan(have) & np.isnan(want) if have.dtype.kind == "f" else False)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(have.astype(np.float64) - want.astype(np.float64)))
    return float(np.max(apart, initial=0))


def selftest_bundle(folder: Path) -> tuple[Compared, ...]:
    """Tests the model of a folder as TFLiteExporter writes it, `Format-Serving/tflite` beside `edge/golden.npz`, or as a device has it.

    Raises:
        SelfTestError: a file is missing; and as `selftest` does.
    """
    flatbuffer = ON_DEVICE if (folder / ON_DEVICE).is_file() else FLATBUFFER
    missing = [name for name in (flatbuffer, GOLDEN) if not (folder / name).is_file()]
    if missing:
        raise SelfTestError(f"{folder}: no {' and no '.join(missing)}; name a folder as TFLiteExporter writes it")
    return selftest((folder / flatbuffer).read_bytes(), (folder / GOLDEN).read_bytes())


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    try:
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise SelfTestError(f"golden.npz can't be read: {' '.join(str(error).split())}; export the model again") from error


def _named(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {key.removeprefix(prefix): values for key, values in arrays.items() if key.startswith(prefix)}


def main(arguments: list[str]) -> int:
    """Writes a line for each output. Exit status 0: all passed; 2: one failed; 1: the test can't be made."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tfx_edge.device.selftest BUNDLE\n")
        return 1
    try:
        compared = selftest_bundle(Path(arguments[0]))
    except SelfTestError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.writelines(f"{output}\n" for output in compared)
    return 0 if all(output.passed for output in compared) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

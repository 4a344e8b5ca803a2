"""Runs a model in TensorFlow Lite Micro; runs in the side environment, so it imports nothing of this package.

    python tflm_child.py FOLDER OUTPUTS

The folder holds `model.tflite` and `inputs.npz`: `[steps, ...]` an input, by its position. Writes `outputs.npz`, the same of the
model's OUTPUTS outputs, and `arena.json`. The interpreter prints the arena that it used to standard error.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Reserved, not touched: only what a model uses takes memory.
LARGEST_ARENA = 1 << 30


def main(folder: Path) -> None:
    """Runs all steps, then looks for the smallest arena."""
    from tflite_micro import runtime

    model = (folder / "model.tflite").read_bytes()
    with np.load(folder / "inputs.npz") as arrays:
        inputs = [arrays[f"arr_{i}"] for i in range(len(arrays.files))]

    def load(arena_bytes: int) -> Any:
        return runtime.Interpreter.from_bytes(model, arena_size=arena_bytes)

    def step(interpreter: Any, at: int) -> None:
        interpreter.reset()  # a model with state must not carry it over from another example
        for i, values in enumerate(inputs):
            interpreter.set_input(values[at], i)
        interpreter.invoke()

    def fits(arena_bytes: int) -> bool:
        # In a process of its own: in an arena that is too small some kernels write where there is nothing.
        child = os.fork()
        if not child:
            status = 1
            with contextlib.suppress(RuntimeError):
                step(load(arena_bytes), 0)
                status = 0
            os._exit(status)
        return os.waitpid(child, 0)[1] == 0

    interpreter = load(LARGEST_ARENA)
    outputs: list[list[Any]] = []
    for at in range(len(inputs[0])):
        step(interpreter, at)
        outputs.append([np.array(interpreter.get_output(i)) for i in range(int(sys.argv[2]))])
    interpreter.print_allocations()
    sys.stderr.flush()
    np.savez(folder / "outputs.npz", *(np.stack(each) for each in zip(*outputs, strict=True)))

    high = 1024
    while high < LARGEST_ARENA and not fits(high):
        high *= 2
    low = high // 2
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    (folder / "arena.json").write_text(json.dumps(low))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""How far the outputs of TensorFlow Lite Micro are from what the gate evaluates, and how far they may be.

Both round a quantized operator's result to the nearest step, but TensorFlow Lite Micro rounds twice and XNNPACK once, so near a
half they choose different ones: of 6,400 results of a dense layer 28 were a step apart. Layers behind it and a softmax multiply
that, so no bound in steps holds for every model. Float kernels differ in the order of their sums alone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.schemas import TensorSpec
from tfx_edge.schemas.target import Target

# Where the target names no bound. Float32 sums of a thousand products are right to 1e-5. Of quantized models 0.06 was seen on an
# int8 MobileNet and 0.05 behind ten dense layers; a wrong operator is off by the size of its output.
_FLOAT_ERROR, _QUANTIZED_ERROR = 1e-4, 0.25
_TINY = 1e-30  # instead of dividing by the largest of zeros


def differences(step: float | None, got: NDArray[Any], evaluated: NDArray[Any]) -> dict[str, float]:
    """How far an output is off.

    Args:
        step: one step of it, where it is quantized.
        got: the real values of TensorFlow Lite Micro.
        evaluated: the real values that the gate evaluates.

    Returns:
        `parity_error`, the largest difference as a share of the largest value, and `parity_steps`, the same in steps; nothing
        where a value isn't finite.
    """
    here, there = (values.astype(np.float64).ravel() for values in (got, evaluated))
    if not np.isfinite(here).all():
        return {}
    off = float(np.abs(here - there).max(initial=0))
    found = {"parity_error": off / max(float(np.abs(there).max(initial=0)), _TINY)}
    # Steps are whole numbers but for the rounding of the real values.
    return found if step is None else {"parity_steps": round(off / step, 3), **found}


def breaches(spec: TensorSpec, found: Mapping[str, float], target: Target) -> Iterator[str]:
    """The reasons against an output that is further off than the target allows."""
    if not found:
        yield f"output {spec.name!r} is NaN or infinite; the device would predict nothing"
    quantized = "parity_steps" in found
    bounds = {
        "parity_steps": target.max_parity_steps,
        "parity_error": (_QUANTIZED_ERROR if quantized else _FLOAT_ERROR) if target.max_parity_error is None else target.max_parity_error,
    }
    for measurement, unit in (("parity_steps", "steps"), ("parity_error", "of its largest value")):
        value, bound = found.get(measurement), bounds[measurement]
        if value is not None and bound is not None and not value <= bound:
            yield f"output {spec.name!r} is {value:.4g} {unit} from what the gate evaluates, max_{measurement} is {bound:g}"
    if found and not quantized and target.max_parity_steps is not None:
        yield f"output {spec.name!r} is float, so max_parity_steps {target.max_parity_steps:g} can't be measured; give max_parity_error"


def step_of(parsed: Any, tensor: int) -> float | None:
    """One step of a quantized output, or of the quantized tensor that a float output is converted from; None for others.

    Args:
        parsed: the flatbuffer, as `inspect.parse` gives it.
        tensor: index of the output in the main graph.
    """
    graph = parsed.subgraphs[0]
    for op in graph.operators or ():
        if tensor in op.outputs and inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]) == "DEQUANTIZE":
            tensor = op.inputs[0]
    quantization = graph.tensors[tensor].quantization
    return None if quantization is None or quantization.scale is None else float(quantization.scale[0])

"""Constants of a flatbuffer that no scheme can carry."""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.quantization import Scheme

_FLOATS: dict[int, type[np.floating[Any]]] = {
    schema.TensorType.FLOAT32: np.float32,
    schema.TensorType.FLOAT16: np.float16,
    schema.TensorType.FLOAT64: np.float64,
}


def check_weights(model: bytes, scheme: Scheme) -> None:
    """Refuses a float flatbuffer with a weight that has no place in a scheme.

    Args:
        model: a float flatbuffer.
        scheme: NaN is wrong in any; a weight beyond 65504, the largest half-precision number, in `float16`; Inf in the integer ones.

    Raises:
        EdgeError: names the tensor, the operator that reads it, and the value.
    """
    parsed = inspect.parse(model)
    for graph in parsed.subgraphs:
        for index, tensor in enumerate(graph.tensors):
            data = parsed.buffers[tensor.buffer].data
            if data is None or tensor.type not in _FLOATS:
                continue
            values = np.frombuffer(np.asarray(data, np.uint8).tobytes(), _FLOATS[tensor.type])
            wrong = _wrong(values, scheme)
            if wrong:
                raise EdgeError(
                    f"weight {tensor.name.decode()!r}{_reader(parsed, graph, index)} holds {wrong}; train the model again or mend it"
                )


def _wrong(values: np.ndarray[Any, Any], scheme: Scheme) -> str | None:
    if np.isnan(values).any():
        return "NaN"
    largest = float(np.abs(values).max(initial=0))
    if scheme == "float16" and np.isfinite(largest) and largest > np.finfo(np.float16).max:
        return f"{largest:g}, which scheme 'float16' can't represent (at most 65504)"
    if scheme in ("dynamic_range", "int8") and np.isinf(largest):
        return f"Inf, which scheme {scheme!r} can't represent"
    return None


def _reader(parsed: Any, graph: Any, index: int) -> str:
    """Names the operator that reads a tensor by its output: the converter calls weights `arith.constant`, which tells nobody which."""
    for op in graph.operators or ():
        if index in op.inputs:
            name = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
            return f" of the {name} that gives {graph.tensors[op.outputs[0]].name.decode()!r}"
    return ""

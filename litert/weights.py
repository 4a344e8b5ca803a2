"""Constants of a flatbuffer: those that no scheme can carry, and those that share values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError, SchemeRule
from tfx_edge.schemas.schemes import Scheme, scheme_of

_FLOATS: dict[int, type[np.floating[Any]]] = {
    schema.TensorType.FLOAT32: np.float32,
    schema.TensorType.FLOAT16: np.float16,
    schema.TensorType.FLOAT64: np.float64,
}
_WEIGHTED = ("FULLY_CONNECTED", "CONV_2D")
_SHARED = 0.5  # distinct values by weights, zeros left out
_INT8_VALUES = 255


def check_weights(model: bytes, scheme: Scheme, rules: Sequence[SchemeRule] = ()) -> None:
    """Refuses a float flatbuffer with a weight that has no place in the scheme of an operator that reads it.

    Args:
        model: a float flatbuffer.
        scheme: NaN is wrong in any; a weight beyond 65504, the largest half-precision number, in `float16`; Inf in the integer ones.
        rules: operators with another scheme.

    Raises:
        EdgeError: names the tensor, the operator that reads it, and the value.
    """
    parsed = inspect.parse(model)
    for graph, op, kind, output in inspect.named_operators(parsed):
        its_scheme = scheme_of(scheme, rules, kind, output)
        for tensor in (graph.tensors[i] for i in op.inputs if i >= 0):
            data = parsed.buffers[tensor.buffer].data
            if data is None or tensor.type not in _FLOATS:
                continue
            wrong = _wrong(np.frombuffer(np.asarray(data, np.uint8).tobytes(), _FLOATS[tensor.type]), its_scheme)
            if wrong:  # the converter calls weights `arith.constant`, which tells nobody which
                raise EdgeError(
                    f"weight {tensor.name.decode()!r} of the {kind} that gives {output!r} holds {wrong}; train the model again or mend it"
                )


def sharing_operators(model: bytes) -> list[tuple[str, str]]:
    """The operators of a float flatbuffer whose weights were clustered: LiteRT's name of each, and its output tensor's.

    A constant counts whose weights other than zero hold at most 255 values, each twice or more on average.
    """
    parsed = inspect.parse(model)
    return [
        (kind, output)
        for graph, op, kind, output in inspect.named_operators(parsed)
        if kind in _WEIGHTED and _shares(parsed, graph.tensors[op.inputs[1]])
    ]


def undivided_operators(model: bytes, block: int) -> list[tuple[str, str]]:
    """The dense layers of a float flatbuffer whose weights don't divide into blocks, named as by `sharing_operators`.

    Args:
        model: a float flatbuffer.
        block: weights a block, along the layer's inputs.
    """
    parsed = inspect.parse(model)
    return [
        (kind, output)
        for graph, op, kind, output in inspect.named_operators(parsed)
        if kind == "FULLY_CONNECTED" and graph.tensors[op.inputs[1]].shape[1] % block
    ]


def _shares(parsed: Any, tensor: Any) -> bool:
    data = parsed.buffers[tensor.buffer].data
    if data is None or tensor.type != schema.TensorType.FLOAT32:
        return False
    values = np.frombuffer(np.asarray(data, np.uint8).tobytes(), np.float32)
    values = values[values != 0]
    distinct = np.unique(values).size
    return bool(0 < distinct <= min(_INT8_VALUES, _SHARED * values.size))


def _wrong(values: np.ndarray[Any, Any], scheme: Scheme) -> str | None:
    if np.isnan(values).any():
        return "NaN"
    largest = float(np.abs(values).max(initial=0))
    if scheme == "float16" and np.isfinite(largest) and largest > float(np.finfo(np.float16).max):
        return f"{largest:g}, which scheme 'float16' can't represent (at most 65504)"
    if scheme not in ("float32", "float16") and np.isinf(largest):
        return f"Inf, which scheme {scheme!r} can't represent"
    return None

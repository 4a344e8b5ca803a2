"""8-bit weights of the operators that litert-quantizer has no dynamic range form of and LiteRT has: the LSTM, and tables (GATHER).

Weights are symmetric, with one scale each, as LiteRT's kernels demand. The LSTM quantizes its activations while it runs; a gather reads
integers, and a DEQUANTIZE behind it makes numbers of the few rows that were read.
"""

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.operator_codes import operator_code
from tfx_edge.litert.packing import empty_unread
from tfx_edge.schemas import QuantizationConfig
from tfx_edge.schemas.schemes import scheme_of

_LSTM, _TABLE = "UNIDIRECTIONAL_SEQUENCE_LSTM", "GATHER"
_LSTM_WEIGHTS = (*range(1, 9), 16)  # inputs: of the gates, from the input and recurrent, and the projection
_SCHEMES = ("dynamic_range", "int4_dynamic_range")
_ROW_LOSS = 1 / 16  # of its largest number, that a table's median row may lose


def quantize_left_weights(parsed: Any, config: QuantizationConfig) -> None:
    """Quantizes float weights of LSTMs, and float tables, of a flatbuffer where the config asks for dynamic range.

    A table stays float whose rows differ so much in size that one scale would leave little of the median row.

    Args:
        parsed: what litert-quantizer wrote, as `inspect.parse` gives it; it is changed.
        config: whose scheme and rules say which operators are meant.
    """
    changed = False
    for graph, op, kind, output in list(inspect.named_operators(parsed)):
        if kind not in (_LSTM, _TABLE) or scheme_of(config.scheme, config.rules, kind, output) not in _SCHEMES:
            continue
        changed |= _lstm(parsed, graph, op) if kind == _LSTM else _table(parsed, graph, op)
    if changed:
        empty_unread(parsed)


def _lstm(parsed: Any, graph: Any, op: Any) -> bool:
    slots = [i for i in _LSTM_WEIGHTS if op.inputs[i] >= 0]
    if any(_constant(parsed, graph.tensors[op.inputs[i]]) is None for i in slots):  # LiteRT takes them all as integers, or none
        return False
    for slot in slots:
        _make_integers(parsed, graph, op, slot)
    return True


def _table(parsed: Any, graph: Any, op: Any) -> bool:
    values = _constant(parsed, graph.tensors[op.inputs[0]])
    if values is None or values.ndim < 2:
        return False
    rows = values.reshape(len(values), -1)
    largest = np.abs(rows).max(axis=1)
    scale = _scale(values)
    lost = np.abs(np.rint(rows / scale) * scale - rows).max(axis=1)
    if np.median(lost[largest > 0] / largest[largest > 0], axis=0) > _ROW_LOSS:
        return False
    _make_integers(parsed, graph, op, 0)
    real = graph.tensors[op.outputs[0]]
    read = _tensor(graph, real.name, real.shape, graph.tensors[op.inputs[0]].quantization)
    graph.tensors[read].shapeSignature = real.shapeSignature
    back = schema.OperatorT()
    back.opcodeIndex = operator_code(parsed, schema.BuiltinOperator.DEQUANTIZE, 2)
    back.inputs, back.outputs, op.outputs = [read], [int(op.outputs[0])], [read]
    graph.operators.insert(next(i for i, o in enumerate(graph.operators) if o is op) + 1, back)
    return True


def _constant(parsed: Any, tensor: Any) -> NDArray[np.float32] | None:
    data = parsed.buffers[tensor.buffer].data
    if data is None or tensor.type != schema.TensorType.FLOAT32:
        return None
    return np.frombuffer(np.asarray(data, np.uint8).tobytes(), np.float32).reshape(tensor.shape)


def _scale(values: NDArray[np.float32]) -> float:
    return float(np.abs(values).max(initial=0)) / 127 or 1.0


def _make_integers(parsed: Any, graph: Any, op: Any, slot: int) -> None:
    """Makes integers of the constant that is an operator's input, in a tensor of their own where others read it in float."""
    index = int(op.inputs[slot])
    tensor = graph.tensors[index]
    values = _constant(parsed, tensor)
    if values is None:
        return
    scale = _scale(values)
    buffer, quantization = schema.BufferT(), schema.QuantizationParametersT()
    buffer.data = np.rint(values / scale).astype(np.int8).view(np.uint8).ravel()
    parsed.buffers.append(buffer)
    quantization.scale, quantization.zeroPoint = np.array([scale], np.float32), np.array([0], np.int64)
    readers = sum(int(i) == index for each in graph.operators for i in each.inputs) + sum(int(i) == index for i in graph.outputs)
    if readers > 1:
        op.inputs[slot] = _tensor(graph, tensor.name, tensor.shape, quantization)
        tensor = graph.tensors[op.inputs[slot]]
    tensor.type, tensor.quantization, tensor.buffer = schema.TensorType.INT8, quantization, len(parsed.buffers) - 1


def _tensor(graph: Any, name: bytes, shape: Any, quantization: Any) -> int:
    tensor = schema.TensorT()
    tensor.name, tensor.type, tensor.shape, tensor.quantization = name + b";int8", schema.TensorType.INT8, shape, quantization
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1

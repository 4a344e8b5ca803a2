"""Keeps what recurrent operators remember apart from constants.

TFLiteConverter makes one of equal constants, also of zeros that an LSTM starts from and writes its state into, and zeros that another
operator reads, such as the start of a GRU beside it. That operator then reads the LSTM's state: wrong results without an error.
"""

import copy
import math
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.packing import pack

# Where an operator reads and writes what it remembers.
_STATES = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": {35, 36, 37, 38},
    "BIDIRECTIONAL_SEQUENCE_RNN": {4, 8},
    "LSTM": {18, 19},
    "RNN": {4},
    "SVDF": {4},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {18, 19},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {4},
}


def separate_states(model: bytes) -> bytes:
    """Gives every operator that reads another's state as a constant a constant of its own: the zeros that it was meant to read.

    Args:
        model: a float flatbuffer, as the converter made it.

    Returns:
        The flatbuffer; `model` itself where nothing is shared, as without recurrent layers. The same bytes wherever it is done.

    Raises:
        EdgeError: not a flatbuffer.
    """
    parsed = inspect.parse(model)
    changed = False
    for graph in parsed.subgraphs:
        copies: dict[int, int] = {}
        for op in graph.operators or ():
            states = _STATES.get(inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]), set())
            inputs = [] if op.inputs is None else [int(index) for index in op.inputs]
            for position, index in enumerate(inputs):
                if index >= 0 and position not in states and graph.tensors[index].isVariable:
                    if index not in copies:
                        copies[index] = _add_zeros(parsed, graph, graph.tensors[index])
                    inputs[position] = copies[index]
                    op.inputs, changed = inputs, True
    return pack(parsed) if changed else model


def _add_zeros(parsed: Any, graph: Any, variable: Any) -> int:
    tensor = copy.copy(variable)
    tensor.isVariable, tensor.name = False, variable.name + b"_zeros"
    buffer = schema.BufferT()
    buffer.data = np.zeros(math.prod(int(size) for size in variable.shape) * 4, np.uint8)
    parsed.buffers.append(buffer)
    tensor.buffer = len(parsed.buffers) - 1
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1

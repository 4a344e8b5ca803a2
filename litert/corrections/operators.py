"""The weighted operators of a flatbuffer: those whose output is a product of their input with constant weights, plus a bias."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.constants import read_constants
from tfx_edge.litert.packing import pack
from tfx_edge.schemas import EdgeError

OUTPUT_AXIS = {"FULLY_CONNECTED": 0, "CONV_2D": 0, "DEPTHWISE_CONV_2D": 3}
"""The kinds that are corrected, and the axis of their weights that counts the channels of the output."""

_OTHERS = frozenset(
    {"BATCH_MATMUL", "CONV_3D", "CONV_3D_TRANSPOSE", "LSTM", "RNN", "SVDF", "TRANSPOSE_CONV"}
    | {"UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"}
)
_LINEAR, _RELU = schema.ActivationFunctionType.NONE, schema.ActivationFunctionType.RELU
_LIMITS = {_LINEAR: (-np.inf, np.inf), _RELU: (0, np.inf), schema.ActivationFunctionType.RELU6: (0, 6)}
_LIMITS[schema.ActivationFunctionType.RELU_N1_TO_1] = (-1, 1)


@dataclass(frozen=True)
class Operator:
    """One weighted operator of the main graph; tensors by their index.

    Attributes:
        kind: LiteRT's name of it.
        name: of its output tensor.
        input: what it multiplies.
        weights: constant; FULLY_CONNECTED `[outputs, inputs]`, CONV_2D `[outputs, height, width, inputs]`, DEPTHWISE_CONV_2D
            `[1, height, width, outputs]`.
        bias: constant `[outputs]`, or None.
        output: its result, after the fused activation.
        limits: what the fused activation clips to; None for one that does something else.
        options: of the operator, as LiteRT's schema has them.
        shared: whether another operator, or the model's output, reads the weights too.
    """

    kind: str
    name: str
    input: int
    weights: int
    bias: int | None
    output: int
    limits: tuple[float, float] | None
    options: Any
    shared: bool

    @property
    def homogeneous(self) -> bool:
        """Whether scaling what it computes by a positive number scales its output alike."""
        return self.limits is not None and set(self.limits) <= {0, -np.inf, np.inf}

    def per_channel(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values `[outputs]` in a shape that broadcasts over the weights."""
        return values if OUTPUT_AXIS[self.kind] == 3 else values.reshape((-1,) + (1,) * (1 if self.kind == "FULLY_CONNECTED" else 3))


def weighted_operators(parsed: Any) -> tuple[list[Operator], dict[tuple[str, str], str]]:
    """Finds the weighted operators of the main graph, float or quantized.

    Args:
        parsed: as `inspect.parse` gives it.

    Returns:
        Them in the order of execution, and by kind and name, why others with weights can't be corrected.
    """
    graph = parsed.subgraphs[0]
    known = read_constants(parsed)
    unpacked = {int(op.outputs[0]): int(op.inputs[0]) for kind, op in operators(parsed) if kind == "DEQUANTIZE"}
    uses = Counter(int(i) for op in graph.operators or () for i in op.inputs)
    uses.update(int(i) for i in graph.outputs)
    found, left = [], {}
    for kind, op in operators(parsed):
        name = graph.tensors[op.outputs[0]].name.decode()
        if kind in _OTHERS:
            left[kind, name] = f"{kind} isn't corrected; {', '.join(OUTPUT_AXIS)} are"
        if kind not in OUTPUT_AXIS:
            continue
        inputs = [int(i) for i in op.inputs]
        weights = unpacked.get(inputs[1], inputs[1])
        if weights not in known and not _packed(parsed, weights):
            left[kind, name] = "its weights are computed"
            continue
        bias = inputs[2] if len(inputs) > 2 and inputs[2] in known else None
        found.append(
            Operator(
                kind=kind,
                name=name,
                input=inputs[0],
                weights=weights,
                bias=bias,
                output=int(op.outputs[0]),
                limits=_LIMITS.get(op.builtinOptions.fusedActivationFunction),
                options=op.builtinOptions,
                shared=uses[inputs[1]] > 1 or uses[weights] > 1,
            )
        )
    return found, left


def operators(parsed: Any) -> Iterator[tuple[str, Any]]:
    """The operators of the main graph in the order of execution, with LiteRT's name of each."""
    for op in parsed.subgraphs[0].operators or ():
        yield inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]), op


def own_biases(float_model: bytes) -> bytes:
    """Gives every weighted operator a bias that no other reads: zeros where it has none, a copy where it shares one.

    Converters store equal constants once, so the zeros of two layers are one tensor. The model computes what it did, and no
    tensor or operator has another index; new tensors stand last.

    Returns:
        The flatbuffer, the same bytes wherever it is done; `float_model` itself where there is nothing to do.
    """
    parsed = inspect.parse(float_model)
    graph = parsed.subgraphs[0]
    known = read_constants(parsed)
    uses = Counter(int(i) for op in graph.operators or () for i in op.inputs)
    changed = False
    for kind, op in operators(parsed):
        inputs = [int(i) for i in op.inputs]
        if kind not in OUTPUT_AXIS or inputs[1] not in known or known[inputs[1]].dtype != np.float32:
            continue
        old = inputs[2] if len(inputs) > 2 else -1
        if old >= 0 and (old not in known or uses[old] == 1):
            continue
        outputs = known[inputs[1]].shape[OUTPUT_AXIS[kind]]
        if old >= 0:
            uses[old] -= 1
        _add_bias(parsed, op, known[old] if old >= 0 else np.zeros(outputs, np.float32))
        changed = True
    return pack(parsed) if changed else float_model


def _add_bias(parsed: Any, op: Any, value: NDArray[Any]) -> None:
    graph = parsed.subgraphs[0]
    buffer, tensor = schema.BufferT(), schema.TensorT()
    buffer.data = np.frombuffer(value.tobytes(), np.uint8)
    parsed.buffers.append(buffer)
    tensor.name = graph.tensors[op.outputs[0]].name + b"/own_bias"
    tensor.type, tensor.shape, tensor.buffer = schema.TensorType.FLOAT32, list(value.shape), len(parsed.buffers) - 1
    graph.tensors.append(tensor)
    op.inputs = [*(int(i) for i in op.inputs[:2]), len(graph.tensors) - 1]


def pairs(float_operators: list[Operator], quantized: Any) -> list[Operator]:
    """The operators of a quantized model that stand for those of the float one, in the same order.

    Raises:
        EdgeError: it has others; a backend that fuses or splits operators can't be corrected.
    """
    found, _ = weighted_operators(quantized)
    have, want = [op.kind for op in found], [op.kind for op in float_operators]
    if have != want:
        raise EdgeError(
            f"corrections: the quantized model has {len(have)} weighted operators ({Counter(have)}), the float one {len(want)} "
            f"({Counter(want)}), so they can't be told which is which; leave corrections out with this backend"
        )
    return found


def _packed(parsed: Any, index: int) -> bool:
    tensor = parsed.subgraphs[0].tensors[index]
    return tensor.type == schema.TensorType.INT4 and parsed.buffers[tensor.buffer].data is not None

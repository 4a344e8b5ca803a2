"""Flatbuffers built tensor by tensor, so that a test knows every number in them and waits for no converter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import Builder
from numpy.typing import NDArray

TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int16": schema.TensorType.INT16,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "string": schema.TensorType.STRING,
}


@dataclass(frozen=True)
class Tensor:
    """One tensor: `[batch, width]`, or a constant. `name` is that of an input or output in the signature."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    scale: float | None = None
    zero_point: int = 0
    value: NDArray[Any] | None = None
    variable: bool = False


@dataclass(frozen=True)
class Op:
    """One operator, for example `Op("FULLY_CONNECTED", (x, w, b), (y,), schema.FullyConnectedOptionsT())`."""

    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options: Any = None


@dataclass(frozen=True)
class Graph:
    """One subgraph; a signature runs it where it has a name."""

    signature: str | None
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ops: tuple[Op, ...]


def pack(graphs: Sequence[Graph]) -> bytes:
    """The flatbuffer of some graphs; the first is the main one."""
    model = schema.ModelT()
    model.version, model.description = 3, b"tiny"
    model.buffers, model.operatorCodes, model.subgraphs, model.signatureDefs = [schema.BufferT()], [], [], []
    for number, graph in enumerate(graphs):
        used = [t for op in graph.ops for t in (*op.inputs, *op.outputs) if t is not None]
        tensors = list(dict.fromkeys(id(t) for t in (*graph.inputs, *used, *graph.outputs)))
        by_id = {id(t): t for t in (*graph.inputs, *used, *graph.outputs)}
        index = {key: i for i, key in enumerate(tensors)}
        packed = schema.SubGraphT()
        packed.name = f"graph{number}".encode()
        packed.tensors = [_tensor(by_id[key], model.buffers) for key in tensors]
        packed.inputs = [index[id(t)] for t in graph.inputs]
        packed.outputs = [index[id(t)] for t in graph.outputs]
        packed.operators = [_operator(op, index, model.operatorCodes) for op in graph.ops]
        model.subgraphs.append(packed)
        if graph.signature is not None:
            signature = schema.SignatureDefT()
            signature.signatureKey, signature.subgraphIndex = graph.signature.encode(), number
            signature.inputs, signature.outputs = _map(graph.inputs, index), _map(graph.outputs, index)
            model.signatureDefs.append(signature)
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _map(tensors: Sequence[Tensor], index: dict[int, int]) -> list[Any]:
    entries = []
    for tensor in tensors:
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = tensor.name.encode(), index[id(tensor)]
        entries.append(entry)
    return entries


def _tensor(tensor: Tensor, buffers: list[Any]) -> Any:
    packed = schema.TensorT()
    packed.name, packed.type = f"{tensor.name}_tensor".encode(), TYPES[tensor.dtype]
    packed.shape = [1 if d is None else d for d in tensor.shape]
    packed.shapeSignature = [-1 if d is None else d for d in tensor.shape]
    packed.isVariable = tensor.variable
    if tensor.value is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(tensor.value, tensor.dtype).tobytes(), np.uint8)
        buffers.append(buffer)
        packed.buffer = len(buffers) - 1
    if tensor.scale is not None:
        packed.quantization = schema.QuantizationParametersT()
        packed.quantization.scale, packed.quantization.zeroPoint = [tensor.scale], [tensor.zero_point]
    return packed


def _operator(op: Op, index: dict[int, int], codes: list[Any]) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, op.kind)
    code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), _VERSIONS.get(op.kind, 1)
    codes.append(code)
    packed = schema.OperatorT()
    packed.opcodeIndex = len(codes) - 1
    packed.inputs = [-1 if t is None else index[id(t)] for t in op.inputs]
    packed.outputs = [index[id(t)] for t in op.outputs]
    if op.options is not None:
        packed.builtinOptions = op.options
        packed.builtinOptionsType = getattr(schema.BuiltinOptions, type(op.options).__name__.removesuffix("T"))
    return packed


_VERSIONS = {"FULLY_CONNECTED": 4, "QUANTIZE": 2, "DEQUANTIZE": 2}

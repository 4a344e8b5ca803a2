"""The operators of a flatbuffer with the sizes, types and constants of their tensors."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.fields import indices, shape, some, text
from tfx_edge.litert.macs import Extent
from tfx_edge.litert.operator_report.extents import extents
from tfx_edge.litert.schema_names import names

_TYPES = {code: name.lower() for code, name in names(schema.TensorType).items()}
_ACTIVATIONS = names(schema.ActivationFunctionType)
_FLOATS = ("bfloat16", "float16", "float32", "float64")


@dataclass(frozen=True)
class Constant:
    """What an operator reads that no operator computes.

    Attributes:
        buffer: index of the data, which several tensors may share.
        dtype: NumPy's name of the element type.
        elements: how many.
        size: bytes.
        is_real: whether the elements stand for real numbers, unlike a shape's or an axis'.
        unpacked: whether a DEQUANTIZE makes floats of them first.
    """

    buffer: int
    dtype: str
    elements: int
    size: int
    is_real: bool
    unpacked: bool = False


@dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes:
        graph: index of its graph.
        kind: LiteRT's name.
        version: of its kernel.
        name: of its first output, empty without one.
        inputs: tensors of its graph, -1 for one that is left out.
        outputs: likewise.
        activation: LiteRT's name of the activation that is fused into it, or None.
        options: as LiteRT's schema has them.
        constants: those it reads, also through a DEQUANTIZE that does nothing else.
        reals: element types of the tensors that are computed and stand for real numbers, inputs first.
        shape: of its first output, -1 where the size is open.
        dtype: element type of its first output.
        input_extents: sizes for one batch.
        output_extents: likewise.
        batch: examples in that batch.
    """

    graph: int
    kind: str
    version: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    activation: str | None
    options: Any
    constants: tuple[Constant, ...]
    reals: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    input_extents: tuple[Extent | None, ...]
    output_extents: tuple[Extent | None, ...]
    batch: int


def read_operators(parsed: Any) -> Iterator[Operator]:
    """The operators of a flatbuffer that `inspect.parse` has read, in its order."""
    for number, graph in enumerate(parsed.subgraphs):
        sizes, batch = extents(parsed, graph)
        unpacked = _unpacked_constants(parsed, graph)
        for op in graph.operators or ():
            yield _operator(parsed, graph, number, op, sizes, batch, unpacked)


def _operator(
    parsed: Any, graph: Any, number: int, op: Any, sizes: Sequence[Extent | None], batch: int, unpacked: dict[int, Constant]
) -> Operator:
    code = parsed.operatorCodes[op.opcodeIndex]
    inputs, outputs = indices(op.inputs), indices(op.outputs)
    own = _unpacks(parsed, graph, op)
    read = [] if own else [_constant(parsed, graph.tensors[i]) or unpacked.get(i) for i in inputs if i >= 0]
    computed = [i for i in (*inputs, *outputs) if i >= 0 and i not in unpacked and _constant(parsed, graph.tensors[i]) is None]
    first = graph.tensors[outputs[0]] if outputs else None
    fused = _ACTIVATIONS.get(getattr(op.builtinOptions, "fusedActivationFunction", 0), "NONE")
    return Operator(
        graph=number,
        kind=inspect.operator_name(code),
        version=int(code.version),
        name=text(first.name) if first is not None else "",
        inputs=inputs,
        outputs=outputs,
        activation=None if fused == "NONE" else fused,
        options=op.builtinOptions,
        constants=tuple(constant for constant in read if constant is not None),
        reals=() if own else tuple(_dtype(graph.tensors[i]) for i in computed if _is_real(graph.tensors[i])),
        shape=shape(first) if first is not None else (),
        dtype=_dtype(first) if first is not None else "none",
        input_extents=tuple(sizes[i] if i >= 0 else None for i in inputs),
        output_extents=tuple(sizes[i] for i in outputs),
        batch=batch,
    )


def _unpacked_constants(parsed: Any, graph: Any) -> dict[int, Constant]:
    """Constants by the tensor that a DEQUANTIZE makes of them: half precision, or integers that are computed in float."""
    return {
        int(op.outputs[0]): replace(constant, unpacked=True)
        for op in graph.operators or ()
        if _unpacks(parsed, graph, op) and (constant := _constant(parsed, graph.tensors[op.inputs[0]])) is not None
    }


def _unpacks(parsed: Any, graph: Any, op: Any) -> bool:
    kind = inspect.operator_name(parsed.operatorCodes[op.opcodeIndex])
    return kind == "DEQUANTIZE" and _constant(parsed, graph.tensors[op.inputs[0]]) is not None


def _constant(parsed: Any, tensor: Any) -> Constant | None:
    data = parsed.buffers[tensor.buffer].data
    if data is None or len(data) == 0:
        return None
    return Constant(int(tensor.buffer), _dtype(tensor), math.prod(indices(tensor.shape)), len(data), _is_real(tensor))


def _is_real(tensor: Any) -> bool:
    quantized = tensor.quantization is not None and len(some(tensor.quantization.scale)) > 0
    return quantized or _dtype(tensor) in _FLOATS


def _dtype(tensor: Any) -> str:
    return str(_TYPES.get(tensor.type, f"unknown_{tensor.type}"))

"""By which names, in which shapes and types a flatbuffer's signatures take and give tensors, read without running it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.fields import shape, text
from tfx_edge.litert.packing import pack
from tfx_edge.litert.quantization import STRING
from tfx_edge.litert.schema_names import names
from tfx_edge.schemas import EdgeError, Signature, TensorSpec

_DTYPES = names(schema.TensorType)


def signatures(model: bytes) -> dict[str, Signature]:
    """The signatures of a flatbuffer by name, also of one that LiteRT can't run.

    Raises:
        EdgeError: not a flatbuffer.
    """
    return read_signatures(inspect.parse(model))


def read_signatures(parsed: Any) -> dict[str, Signature]:
    """The same of a flatbuffer that `inspect.parse` has read."""
    return {text(s.signatureKey): _signature(s, parsed.subgraphs[s.subgraphIndex]) for s in parsed.signatureDefs or ()}


def rename_signature(model: bytes, signature: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> bytes:
    """Gives a signature's inputs and outputs other names; nothing else changes.

    Args:
        model: a flatbuffer.
        signature: its name.
        inputs: new names by the old.
        outputs: new names by the old.

    Returns:
        The same bytes where no name is another.
    """
    if all(old == new for names in (inputs, outputs) for old, new in names.items()):
        return model
    parsed = inspect.parse(model)
    [found] = [s for s in parsed.signatureDefs if s.signatureKey.decode() == signature]
    for tensors, new in ((found.inputs, inputs), (found.outputs, outputs)):
        for tensor in tensors:
            tensor.name = new[tensor.name.decode()].encode()
    return pack(parsed)


def check_io_type(float_model: bytes, quantized: bytes, io_type: str) -> None:
    """Checks that every input and output that is float32 in a float flatbuffer has the type in the quantized one that was asked for.

    Raises:
        EdgeError: one has another; the text has its name and both types.
    """
    before, now = signatures(float_model), signatures(quantized)
    for name, signature in before.items():
        for was, spec in zip((*signature.inputs, *signature.outputs), (*now[name].inputs, *now[name].outputs), strict=True):
            if was.dtype == "float32" and spec.dtype != io_type:
                raise EdgeError(
                    f"io_type {io_type!r}, but {spec.name!r} of the quantized model is {spec.dtype}; if plan.json was changed by hand, run "
                    "Quantizer again, otherwise set another io_type"
                )


def quantization(tensor: Any) -> tuple[tuple[float, ...], tuple[int, ...], int]:
    """A tensor's scales, zero points and the dimension that they go along; empty where nothing is quantized."""
    parameters = tensor.quantization
    if parameters is None or parameters.scale is None:
        return (), (), 0
    zero_points = parameters.zeroPoint if parameters.zeroPoint is not None else np.zeros(len(parameters.scale), np.int64)
    return tuple(map(float, parameters.scale)), tuple(map(int, zero_points)), int(parameters.quantizedDimension)


def dtype(tensor: Any) -> str:
    """LiteRT's name of a tensor's element type, for example INT8."""
    return str(_DTYPES.get(tensor.type, f"UNKNOWN_{tensor.type}"))


def _signature(found: Any, graph: Any) -> Signature:
    return Signature(
        inputs=tuple(_spec(text(t.name), graph.tensors[t.tensorIndex]) for t in found.inputs or ()),
        outputs=tuple(_spec(text(t.name), graph.tensors[t.tensorIndex]) for t in found.outputs or ()),
    )


def _spec(name: str, tensor: Any) -> TensorSpec:
    scales, zero_points, _ = quantization(tensor)
    kind = dtype(tensor).lower()
    return TensorSpec(
        name=name,
        shape=tuple(None if size < 0 else size for size in shape(tensor)),
        dtype=STRING if kind == "string" else kind,
        scale=scales[0] if len(scales) == 1 else None,
        zero_point=zero_points[0] if len(scales) == 1 else None,
    )

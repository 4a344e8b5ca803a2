"""A flatbuffer read without running it: operators, tensors, signatures, metadata, and which targets take its operators."""

import contextlib
import resource
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.metadata import read_metadata
from tfx_edge.litert.quantization import STRING
from tfx_edge.litert.schema_names import names
from tfx_edge.litert.targets.rules import judge
from tfx_edge.schemas import EdgeError, Signature, TensorSpec
from tfx_edge.schemas.description import (
    FlatbufferDescription,
    GraphDescription,
    MetadataEntry,
    OperatorDescription,
    TargetSupport,
    TensorDescription,
)
from tfx_edge.schemas.target import Target, TargetProfile, profile_names

_DTYPES = names(schema.TensorType)
_MEMORY_BYTES = 4 << 30
_PROFILES = tuple(Target(profile=name).resolve() for name in profile_names())


def describe(model: bytes) -> FlatbufferDescription:
    """Describes a flatbuffer.

    Args:
        model: the file's content; may be damaged.

    Raises:
        EdgeError: not a flatbuffer, or a damaged one.
    """
    parsed = inspect.parse(model)
    try:
        return FlatbufferDescription(
            digest=inspect.digest(model),
            size_bytes=len(model),
            gzip_bytes=inspect.gzip_size(model),
            minimum_runtime=inspect.minimum_runtime(model),
            operators=inspect.operators(model),
            constant_bytes=sum(_size(buffer) for buffer in parsed.buffers),
            signatures=_signatures(parsed),
            graphs=tuple(_graph(parsed, graph) for graph in parsed.subgraphs),
            metadata=tuple(MetadataEntry(name=_text(m.name), bytes=_size(parsed.buffers[m.buffer])) for m in parsed.metadata or ()),
            model_metadata=read_metadata(model),
            targets=tuple(_support(model, profile) for profile in _PROFILES if profile.rules),
        )
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise EdgeError(
            f"a damaged LiteRT flatbuffer ({len(model)} bytes): {type(error).__name__} {' '.join(str(error).split()):.200}; "
            "export the model again"
        ) from error


def signatures(model: bytes) -> dict[str, Signature]:
    """The signatures of a flatbuffer by name, also of one that LiteRT can't run.

    Raises:
        EdgeError: not a flatbuffer.
    """
    return _signatures(inspect.parse(model))


def describe_safely(model: bytes, time_limit_s: float = 60) -> FlatbufferDescription:
    """`describe` in a process of its own: a hostile file can name one table a million times over, and fill memory and hours.

    Raises:
        EdgeError: as `describe`, or it took too much time or memory.
    """
    return call_in_child(_describe_in_child, model, time_limit_s=time_limit_s)


def _describe_in_child(note: Note, model: bytes) -> FlatbufferDescription:
    note("reading the flatbuffer")
    with contextlib.suppress(ValueError):  # the process may have a lower limit already
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    try:
        return describe(model)
    except MemoryError:
        raise EdgeError(f"a hostile or damaged LiteRT flatbuffer ({len(model)} bytes): reading it takes more than 4 GB") from None


def _graph(parsed: Any, graph: Any) -> GraphDescription:
    return GraphDescription(
        name=_text(graph.name),
        tensors=tuple(_tensor(tensor, parsed.buffers[tensor.buffer]) for tensor in _some(graph.tensors)),
        operators=tuple(
            OperatorDescription(
                name=inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]),
                version=parsed.operatorCodes[op.opcodeIndex].version,
                inputs=_indices(op.inputs),
                outputs=_indices(op.outputs),
            )
            for op in _some(graph.operators)
        ),
        inputs=_indices(graph.inputs),
        outputs=_indices(graph.outputs),
    )


def _tensor(tensor: Any, buffer: Any) -> TensorDescription:
    scales, zero_points, dimension = _quantization(tensor)
    return TensorDescription(
        name=_text(tensor.name),
        dtype=_dtype(tensor),
        shape=_shape(tensor),
        bytes=_size(buffer) or None,
        scales=scales,
        zero_points=zero_points,
        quantized_dimension=dimension,
    )


def _quantization(tensor: Any) -> tuple[tuple[float, ...], tuple[int, ...], int]:
    parameters = tensor.quantization
    if parameters is None or parameters.scale is None:
        return (), (), 0
    zero_points = parameters.zeroPoint if parameters.zeroPoint is not None else np.zeros(len(parameters.scale), np.int64)
    return tuple(map(float, parameters.scale)), tuple(map(int, zero_points)), int(parameters.quantizedDimension)


def _signatures(parsed: Any) -> dict[str, Signature]:
    return {_text(s.signatureKey): _signature(s, parsed.subgraphs[s.subgraphIndex]) for s in parsed.signatureDefs or ()}


def _signature(found: Any, graph: Any) -> Signature:
    return Signature(
        inputs=tuple(_spec(_text(t.name), graph.tensors[t.tensorIndex]) for t in found.inputs or ()),
        outputs=tuple(_spec(_text(t.name), graph.tensors[t.tensorIndex]) for t in found.outputs or ()),
    )


def _spec(name: str, tensor: Any) -> TensorSpec:
    scales, zero_points, _ = _quantization(tensor)
    dtype = _dtype(tensor).lower()
    return TensorSpec(
        name=name,
        shape=tuple(None if size < 0 else size for size in _shape(tensor)),
        dtype=STRING if dtype == "string" else dtype,
        scale=scales[0] if len(scales) == 1 else None,
        zero_point=zero_points[0] if len(scales) == 1 else None,
    )


def _shape(tensor: Any) -> tuple[int, ...]:
    """With -1 for what the signature leaves open, where a file tells."""
    shape = tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape
    return _indices(shape)


def _dtype(tensor: Any) -> str:
    return str(_DTYPES.get(tensor.type, f"UNKNOWN_{tensor.type}"))


def _support(model: bytes, profile: TargetProfile) -> TargetSupport:
    outcome = judge(model, profile)
    left = Counter[str]()
    for placement in outcome.ops:
        if placement.reason:
            left[placement.operator] += placement.count
    return TargetSupport(
        target=profile.name,
        supported=sum(p.count for p in outcome.ops) - left.total(),
        unsupported=dict(sorted(left.items())),
        reasons=tuple(dict.fromkeys((*outcome.reasons, *(f"{p.operator}: {p.reason}" for p in outcome.ops if p.reason)))),
    )


def _size(buffer: Any) -> int:
    return 0 if buffer.data is None else len(buffer.data)


def _indices(values: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in _some(values))


def _some(values: Iterable[Any] | None) -> Iterator[Any]:
    """A vector's elements; none where a file leaves it out."""
    yield from () if values is None else values


def _text(name: Any) -> str:
    return "" if name is None else bytes(name).decode(errors="backslashreplace")

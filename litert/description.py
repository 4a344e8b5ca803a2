"""A flatbuffer read without running it: operators, tensors, signatures, metadata, and which targets take its operators."""

import contextlib
import resource
from collections import Counter
from typing import Any

from tfx_edge.litert import inspect
from tfx_edge.litert.child import Note, call_in_child
from tfx_edge.litert.fields import indices, shape, some, text
from tfx_edge.litert.metadata import read_metadata
from tfx_edge.litert.signatures import dtype, quantization, read_signatures
from tfx_edge.litert.targets.rules import judge
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.description import (
    FlatbufferDescription,
    GraphDescription,
    MetadataEntry,
    OperatorDescription,
    TargetSupport,
    TensorDescription,
)
from tfx_edge.schemas.target import Target, TargetProfile, profile_names

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
            signatures=read_signatures(parsed),
            graphs=tuple(_graph(parsed, graph) for graph in parsed.subgraphs),
            metadata=tuple(MetadataEntry(name=text(m.name), bytes=_size(parsed.buffers[m.buffer])) for m in parsed.metadata or ()),
            model_metadata=read_metadata(model),
            targets=tuple(_support(model, profile) for profile in _PROFILES if profile.rules),
        )
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise EdgeError(
            f"a damaged LiteRT flatbuffer ({len(model)} bytes): {type(error).__name__} {' '.join(str(error).split()):.200}; "
            "export the model again"
        ) from error


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
        name=text(graph.name),
        tensors=tuple(_tensor(tensor, parsed.buffers[tensor.buffer]) for tensor in some(graph.tensors)),
        operators=tuple(
            OperatorDescription(
                name=inspect.operator_name(parsed.operatorCodes[op.opcodeIndex]),
                version=parsed.operatorCodes[op.opcodeIndex].version,
                inputs=indices(op.inputs),
                outputs=indices(op.outputs),
            )
            for op in some(graph.operators)
        ),
        inputs=indices(graph.inputs),
        outputs=indices(graph.outputs),
    )


def _tensor(tensor: Any, buffer: Any) -> TensorDescription:
    scales, zero_points, dimension = quantization(tensor)
    return TensorDescription(
        name=text(tensor.name),
        dtype=dtype(tensor),
        shape=shape(tensor),
        bytes=_size(buffer) or None,
        scales=scales,
        zero_points=zero_points,
        quantized_dimension=dimension,
    )


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

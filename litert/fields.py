"""What the fields of a parsed flatbuffer say, also where a file leaves them out."""

from typing import Any

from ai_edge_litert import schema_py_generated as schema

INTEGERS = frozenset({schema.TensorType.INT8, schema.TensorType.INT16, schema.TensorType.UINT8})
"""The types of activations by which LiteRT's kernels stand for real values."""


def some(values: Any) -> Any:
    """A vector; an empty one where the file leaves it out."""
    return () if values is None else values


def indices(values: Any) -> tuple[int, ...]:
    """A vector of numbers; empty where the file leaves it out."""
    return tuple(int(v) for v in some(values))


def text(name: Any) -> str:
    """A name, whatever bytes it holds."""
    return "" if name is None else bytes(name).decode(errors="backslashreplace")


def shape(tensor: Any) -> tuple[int, ...]:
    """With -1 for what the signature leaves open, where a file tells."""
    return indices(tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape)


def holds_integers(tensor: Any) -> bool:
    """Whether it stands for real values by integers, as activations do."""
    return tensor.type in INTEGERS and tensor.quantization is not None and len(some(tensor.quantization.scale)) > 0

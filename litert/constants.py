"""Constants of a float flatbuffer by the index of their tensor in the main graph: read, replace, compare.

    values = constants(model)
    model = replace_constants(model, {7: values[7] * 2})

Replacing them changes nothing else: operators, tensors and their indices stay.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from tfx_edge.litert import inspect
from tfx_edge.litert.packing import pack
from tfx_edge.schemas import EdgeError

_TYPES: dict[int, np.dtype[Any]] = {
    getattr(schema.TensorType, name.upper()): np.dtype(name)
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
}


def constants(model: bytes) -> dict[int, NDArray[Any]]:
    """The constants of the main graph, each of its tensor's shape and type; text and packed 4-bit integers are left out.

    Raises:
        EdgeError: not a flatbuffer.
    """
    return read_constants(inspect.parse(model))


def read_constants(parsed: Any) -> dict[int, NDArray[Any]]:
    """`constants` of a flatbuffer that `inspect.parse` has read."""
    found: dict[int, NDArray[Any]] = {}
    for index, tensor in enumerate(parsed.subgraphs[0].tensors):
        data = parsed.buffers[tensor.buffer].data
        if data is None or len(data) == 0 or tensor.type not in _TYPES:
            continue
        shape = () if tensor.shape is None else tuple(int(d) for d in tensor.shape)
        found[index] = np.frombuffer(np.asarray(data, np.uint8).tobytes(), _TYPES[tensor.type]).reshape(shape)
    return found


def replace_constants(model: bytes, values: Mapping[int, NDArray[Any]]) -> bytes:
    """The model with other values for some of its constants.

    A constant whose bytes another tensor shares gets bytes of its own, so that nothing but it changes.

    Args:
        model: a flatbuffer.
        values: by index of the tensor in the main graph, of its shape and type.

    Returns:
        The flatbuffer; the same bytes wherever it is done, `model` itself when there are no values.

    Raises:
        EdgeError: one of the tensors is no constant, or has another shape or type.
    """
    if not values:
        return model
    parsed = inspect.parse(model)
    tensors = parsed.subgraphs[0].tensors
    have = read_constants(parsed)
    uses = Counter(tensor.buffer for graph in parsed.subgraphs for tensor in graph.tensors)
    uses.update(entry.buffer for entry in parsed.metadata or ())
    for index, value in sorted(values.items()):
        if index not in have:
            raise EdgeError(f"tensor {index} of the flatbuffer is no constant; it has {len(tensors)} tensors, {len(have)} are constants")
        old = have[index]
        if (value.shape, value.dtype) != (old.shape, old.dtype):
            raise EdgeError(
                f"constant {tensors[index].name.decode()!r} (tensor {index}) is {old.dtype} of shape {old.shape}, "
                f"the new value {value.dtype} of shape {value.shape}; give it the constant's own"
            )
        if uses[tensors[index].buffer] > 1:
            uses[tensors[index].buffer] -= 1
            parsed.buffers.append(schema.BufferT())
            tensors[index].buffer = len(parsed.buffers) - 1
            uses[tensors[index].buffer] = 1
        parsed.buffers[tensors[index].buffer].data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    return pack(parsed)


def changed_constants(before: bytes, after: bytes) -> dict[int, NDArray[Any]]:
    """The constants of `after` that differ, in any bit, from those of `before`, a model with the same tensors.

    Raises:
        EdgeError: the two don't have the same constants.
    """
    old, new = constants(before), constants(after)
    if {i: (v.shape, v.dtype) for i, v in old.items()} != {i: (v.shape, v.dtype) for i, v in new.items()}:
        raise EdgeError(f"two flatbuffers with different constants ({len(old)} and {len(new)}); compare a model with its own correction")
    return {index: value for index, value in new.items() if value.tobytes() != old[index].tobytes()}

"""Constants that stand in a flatbuffer several times, once a signature."""

import numpy as np

from tfx_edge.litert import inspect
from tfx_edge.litert.packing import empty_unread, pack


def share_constants(model: bytes) -> bytes:
    """Keeps one copy of equal constants; each tensor reads the bytes that it read before.

    Args:
        model: a flatbuffer.
    """
    parsed = inspect.parse(model)
    contents = [b"" if buffer.data is None else np.asarray(buffer.data, np.uint8).tobytes() for buffer in parsed.buffers]
    first: dict[bytes, int] = {}
    for graph in parsed.subgraphs:
        for tensor in graph.tensors:
            if content := contents[tensor.buffer]:
                tensor.buffer = first.setdefault(content, tensor.buffer)
    empty_unread(parsed)
    return pack(parsed)

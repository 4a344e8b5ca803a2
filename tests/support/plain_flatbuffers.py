"""Flatbuffers as they are before the exporter writes into them what they say of themselves."""

from tfx_edge.litert import inspect
from tfx_edge.litert.packing import pack


def without_metadata(model: bytes) -> bytes:
    """The flatbuffer without TFLite Metadata, whose buffer is the last."""
    parsed = inspect.parse(model)
    [entry] = [entry for entry in parsed.metadata if entry.name == b"TFLITE_METADATA"]
    assert entry.buffer == len(parsed.buffers) - 1
    parsed.metadata.remove(entry)
    parsed.buffers.pop()
    return pack(parsed)

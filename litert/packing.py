"""The objects of LiteRT's schema as a file again, with constants where the schema wants them.

`flatbuffer_utils` of ai-edge-litert packs with generated Python code, which knows nothing of `force_align: 16` in the schema: of the
constants of a model that went through it three quarters lay between two such addresses. Kernels that read them in vectors, and a
microcontroller that runs them from flash, want them there.
"""

from typing import Any

import numpy as np
from flatbuffers import Builder
from numpy.typing import NDArray

ALIGNMENT = 16  # schema.fbs: `data:[ubyte] (force_align: 16)`
_IDENTIFIER = b"TFL3"


class _AligningBuilder(Builder):  # type: ignore[misc]
    def CreateNumpyVector(self, x: NDArray[Any]) -> int:
        """Writes a vector; one of bytes, which constants are, begins at a multiple of `ALIGNMENT`."""
        if x.dtype == np.uint8 and x.size:
            self.Prep(ALIGNMENT, x.size)
        return int(super().CreateNumpyVector(x))


def pack(parsed: Any) -> bytes:
    """The flatbuffer of a `ModelT`. The same objects give the same bytes.

    Args:
        parsed: as `inspect.parse` gives it, perhaps changed. Data that lay behind the flatbuffer is put inside, where runtimes before
            2.15 and TensorFlow Lite Micro look for it.
    """
    for buffer in parsed.buffers:
        buffer.offset = buffer.size = 0
        if buffer.data is not None:
            buffer.data = np.asarray(buffer.data, np.uint8)
    builder = _AligningBuilder(1024)
    builder.Finish(parsed.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())


def empty_unread(parsed: Any) -> None:
    """Empties the buffers of a `ModelT` that neither a tensor nor metadata reads any more."""
    read = {0} | {t.buffer for graph in parsed.subgraphs for t in graph.tensors} | {entry.buffer for entry in parsed.metadata or ()}
    for index, buffer in enumerate(parsed.buffers):
        if index not in read:
            buffer.data = None

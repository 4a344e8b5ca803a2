"""A model as C++ source for TensorFlow Lite Micro: the flatbuffer as an aligned array, its operators, and how large an arena it needs.

    source = micro_source(model, "digits", arena_bytes=2664)
    source.header    # model.h
    b"".join(source) # model.cc

The same arguments give the same bytes. Firmware uses it like this:

    #include "model.h"
    static tflite::MicroMutableOpResolver<digits::kOperatorCount> resolver;
    alignas(16) static uint8_t arena[digits::kArenaSize];
    TF_LITE_ENSURE_STATUS(digits::RegisterOps(resolver));
    static tflite::MicroInterpreter interpreter(tflite::GetModel(digits::kModel), resolver, arena, sizeof(arena));
"""

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from tfx_edge.litert import inspect
from tfx_edge.litert.targets.micro_operators import registrations
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.cpp_names import cpp_namespace

HEADER, SOURCE = "model.h", "model.cc"

ARENA_MARGIN = 1.25
"""How much larger than measured the suggested arena is: the kernels of a board, as CMSIS-NN's, take scratch memory from it that the
reference kernels measured here don't."""

_ARENA_UNIT = 1024
_PER_LINE = 16
_CHUNK = _PER_LINE << 14  # bytes of the model that become text at a time, about 1.3 MB of it


@dataclass(frozen=True)
class MicroSource:
    """The two files. Iterating gives `model.cc` in chunks, since its text is five times as large as the model.

    Attributes:
        model: the flatbuffer that the array holds.
        header: `model.h`.
        namespace: in which everything is.
    """

    model: memoryview
    header: bytes
    namespace: str

    def __iter__(self) -> Iterator[bytes]:
        yield (
            f'#include "{HEADER}"\n\nnamespace {self.namespace} {{\n\nalignas(16) const unsigned char kModel[kModelSize] = {{\n'
        ).encode()
        for at in range(0, len(self.model), _CHUNK):
            yield _bytes_as_text(self.model[at : at + _CHUNK])
        yield f"}};\n\n}}  // namespace {self.namespace}\n".encode()


def micro_source(model: bytes, namespace: str, *, arena_bytes: int | None = None, tool: str = "TensorFlow Lite Micro") -> MicroSource:
    """Writes a model as C++ source.

    Args:
        model: a flatbuffer; files appended to it, as TFLite metadata's label files, aren't taken in.
        namespace: C++ namespace.
        arena_bytes: the smallest arena in which the model was seen to run; None leaves the suggestion out.
        tool: what measured it, for the comment.

    Raises:
        EdgeError: not a flatbuffer, the namespace is none, or TensorFlow Lite Micro lacks an operator of the model.
    """
    try:
        cpp_namespace(namespace)
    except ValueError as error:
        raise EdgeError(f"namespace {namespace!r:.200}: {error}") from None
    methods = registrations(inspect.operators(model))
    alone = flatbuffer_alone(model)
    return MicroSource(alone, _header(alone, namespace, methods, arena_bytes, tool).encode(), namespace)


def suggested_arena(arena_bytes: int) -> int:
    """Bytes of an arena for firmware, from those measured here.

    >>> suggested_arena(2664)
    4096
    """
    return -int(-arena_bytes * ARENA_MARGIN // _ARENA_UNIT) * _ARENA_UNIT


def flatbuffer_alone(model: bytes) -> memoryview:
    """A model without the ZIP archive behind it, in which TFLite metadata keeps label files."""
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            start = min((file.header_offset for file in archive.infolist()), default=archive.start_dir)
        inspect.parse(model[:start])  # an archive in one of the model's own buffers, the last, is no appended one
    except (EdgeError, zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return memoryview(model)
    return memoryview(model)[:start]


def _header(model: memoryview, namespace: str, methods: list[str], arena_bytes: int | None, tool: str) -> str:
    guard = f"{namespace.upper()}_MODEL_H_"
    first, *others = methods
    arena = (
        ""
        if arena_bytes is None
        else f"""
// A size for the tensor arena, in bytes: the smallest in which the model ran was {arena_bytes}, in {tool} on a machine
// with pointers of 64 bits; a quarter is added for scratch memory of the board's own kernels. What the model uses on the board is
// interpreter.arena_used_bytes().
constexpr std::size_t kArenaSize = {suggested_arena(arena_bytes)};
"""
    )
    register_others = "".join(f"  if (status == 0) status = resolver.{method}();\n" for method in others)
    return f"""\
// A model for TensorFlow Lite Micro, written by tfx-edge from the flatbuffer beside it.
#ifndef {guard}
#define {guard}

#include <cstddef>

namespace {namespace} {{

// The flatbuffer, aligned to 16 bytes; sha256 {hashlib.sha256(model).hexdigest()}.
constexpr std::size_t kModelSize = {len(model)};
extern const unsigned char kModel[kModelSize];
{arena}
// What the model's operators need: a tflite::MicroMutableOpResolver<kOperatorCount>, or a larger one for several models.
constexpr unsigned int kOperatorCount = {len(methods)};

// Registers them. Gives kTfLiteOk, which is 0, or the status of the first that failed.
template <typename Resolver>
auto RegisterOps(Resolver& resolver) {{
  auto status = resolver.{first}();
{register_others}  return status;
}}

}}  // namespace {namespace}

#endif  // {guard}
"""


def _bytes_as_text(data: memoryview) -> bytes:
    values = np.frombuffer(data, np.uint8)
    whole = len(values) // _PER_LINE * _PER_LINE
    lines = _TEXT[values[:whole]].reshape(-1, _PER_LINE * _TEXT.shape[1])
    text = np.pad(lines, ((0, 0), (0, 1)), constant_values=ord("\n")).tobytes()
    rest = _TEXT[values[whole:]].tobytes()
    return text + (rest + b"\n" if rest else b"")


_TEXT = np.array([list(f"0x{value:02x},".encode()) for value in range(256)], np.uint8)

"""What a flatbuffer is made of: operators, digest, sizes, and the runtime it needs."""

import gzip
import hashlib
import importlib.metadata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert.schema_names import names
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.versions import TFLITE_VERSION, version_numbers

# Oldest TensorFlow Lite release that computes an operator with 4-bit weights right. Operator versions don't tell: 2.16.2, 2.17.1 and
# 2.18.1 load a convolution with 4-bit weights and compute garbage without an error; 2.20 was seen right. DEQUANTIZE is refused by
# 2.17.1 and right in 2.18.1; the rest is after LiteRT's op_version.cc and runtime_version.cc.
_INT4 = {"DEQUANTIZE": "2.18.0", "EMBEDDING_LOOKUP": "2.18.0", "SLICE": "2.21.0", "CONCATENATION": "2.21.0", "QUANTIZE": "2.21.0"}
_ANY_INT4, _INT16_INT4, _INT4_BLOCKS = "2.20.0", "2.20.0", "2.21.0"  # 2.21 is the oldest that was seen to compute blocks right

_RUNTIME = "min_runtime_version"  # the metadata's name

CUSTOM = "custom:"  # what the names of operators begin with that aren't LiteRT's


def digest(model: bytes) -> str:
    """sha256 of the flatbuffer, in hexadecimal."""
    return hashlib.sha256(model).hexdigest()


def gzip_size(model: bytes) -> int:
    """Bytes after `gzip -9` without a time stamp or a name: about what a device downloads."""
    return len(gzip.compress(model, 9, mtime=0))


def operators(model: bytes) -> dict[str, int]:
    """How often each operator occurs in all graphs of the model, by LiteRT's name, sorted; custom ones as `custom:<name>`.

    Raises:
        EdgeError: not a flatbuffer, or one of its operators has no code.
    """
    parsed = parse(model)
    codes = parsed.operatorCodes or ()
    used = Counter(op.opcodeIndex for graph in parsed.subgraphs or () for op in graph.operators or ())
    unknown = sorted(set(used) - set(range(len(codes))))
    if unknown:
        raise EdgeError(f"a damaged LiteRT flatbuffer: operator code {unknown[0]}, the file has {len(codes)}; export the model again")
    counts: Counter[str] = Counter()
    for index, count in used.items():
        counts[operator_name(codes[index])] += count
    return dict(sorted(counts.items()))


def quantized_tensors(model: bytes) -> list[str]:
    """Names of the tensors, weights included, that hold integers standing for real values, or float16.

    Raises:
        EdgeError: not a flatbuffer.
    """
    return [
        tensor.name.decode()
        for graph in parse(model).subgraphs
        for tensor in graph.tensors
        if tensor.type == schema.TensorType.FLOAT16 or (tensor.quantization is not None and tensor.quantization.scale is not None)
    ]


def operator_name(code: Any) -> str:
    """LiteRT's name of an operator code, for example `FULLY_CONNECTED`."""
    if code.customCode:
        return CUSTOM + str(code.customCode, "utf-8", "replace")
    # Codes above 127 don't fit the older of the two fields, which then holds a placeholder.
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    return str(_BUILTIN_NAMES.get(number, f"UNKNOWN_{number}"))


def named_operators(parsed: Any) -> Iterator[tuple[Any, Any, str, str]]:
    """The operators of a parsed flatbuffer in its order: graph, operator, LiteRT's name and that of its first output.

    Plans, rules and reports call an operator by these two names. One without an output has an empty one.
    """
    for graph in parsed.subgraphs:
        for op in graph.operators or ():
            output = graph.tensors[op.outputs[0]].name.decode() if op.outputs is not None and len(op.outputs) else ""
            yield graph, op, operator_name(parsed.operatorCodes[op.opcodeIndex]), output


def minimum_runtime(model: bytes) -> str | None:
    """The oldest TensorFlow Lite version that has the model's operators; None if the converter wrote none.

    It is what the converter wrote, or newer where an operator reads 4-bit integers: litert-quantizer leaves operators' versions as they
    are, so that older runtimes load such a file and compute garbage.

    Raises:
        EdgeError: not a flatbuffer, or a damaged one with 4-bit integers.
    """
    parsed = parse(model)
    written = written_runtime(parsed)
    try:
        versions = [*([written] if written else []), *int4_runtimes(parsed)]
    except (AttributeError, IndexError, TypeError) as error:  # a damaged file's indices lead nowhere
        raise EdgeError(f"a damaged LiteRT flatbuffer ({len(model)} bytes): {error}; export the model again") from error
    return newest_version(versions) if versions else None


def written_runtime(parsed: Any) -> str | None:
    """The minimum runtime that a parsed flatbuffer names; None where it names none."""
    return next((content.rstrip(b"\0").decode() for name, content in _metadata(parsed) if name == _RUNTIME), None)


def write_runtime(parsed: Any, versions: Iterable[str]) -> None:
    """Names the newest of some versions as the minimum runtime of a parsed flatbuffer, where it names one."""
    for entry in parsed.metadata or ():
        if entry.name == _RUNTIME.encode():
            content = newest_version(versions).encode().ljust(16, b"\0")  # as the converter pads it
            parsed.buffers[entry.buffer].data = np.frombuffer(content, np.uint8)


def int4_runtimes(parsed: Any) -> set[str]:
    """The TensorFlow Lite versions that the operators on 4-bit integers of a parsed flatbuffer need."""
    found: set[str] = set()
    if not any(t.type == schema.TensorType.INT4 for graph in parsed.subgraphs or () for t in graph.tensors or ()):
        return found
    for graph, op, kind, _ in named_operators(parsed):
        inputs = [graph.tensors[i] for i in op.inputs if i >= 0]
        four_bits = [t for t in (*inputs, *(graph.tensors[i] for i in op.outputs)) if t.type == schema.TensorType.INT4]
        if not four_bits:
            continue
        found.add(_INT4.get(kind, _ANY_INT4))
        if any(t.type == schema.TensorType.INT16 for t in inputs):
            found.add(_INT16_INT4)
        if any(_in_blocks(t) for t in four_bits):
            found.add(_INT4_BLOCKS)
    return found


def runtime() -> str:
    """The LiteRT installed here, for example `LiteRT 2.3.0 (TensorFlow Lite 2.21.0)`."""
    return f"LiteRT {importlib.metadata.version('ai-edge-litert')} (TensorFlow Lite {TFLITE_VERSION})"


def newest_version(versions: Iterable[str]) -> str:
    """The greatest of some versions, compared as numbers; one that isn't a version counts as newer than all, as UNKNOWN does."""
    return max(versions, key=lambda v: (version_numbers(v) is None, version_numbers(v) or ()))


def parse(model: bytes) -> Any:
    """The flatbuffer as the mutable objects of LiteRT's schema (`ModelT`), with the data of every buffer in its place.

    Raises:
        EdgeError: not a flatbuffer.
    """
    if not schema.Model.ModelBufferHasIdentifier(model, 0):
        raise EdgeError(f"not a LiteRT flatbuffer ({len(model)} bytes, no TFL3 identifier); expected a .tflite file")
    try:
        parsed = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model, 0))
        for buffer in parsed.buffers:
            if buffer.offset > 1:  # data that lies behind the flatbuffer
                buffer.data = np.frombuffer(model, np.uint8, buffer.size, buffer.offset)
    except Exception as error:
        raise EdgeError(f"a damaged LiteRT flatbuffer ({len(model)} bytes): {error}; export the model again") from error
    return parsed


def _metadata(parsed: Any) -> Iterator[tuple[str, bytes]]:
    for entry in parsed.metadata or ():
        data = parsed.buffers[entry.buffer].data
        yield entry.name.decode(), b"" if data is None else bytes(data)


def _in_blocks(tensor: Any) -> bool:
    blocks = schema.QuantizationDetails.BlockwiseQuantization
    return tensor.quantization is not None and tensor.quantization.detailsType == blocks


_BUILTIN_NAMES = names(schema.BuiltinOperator)

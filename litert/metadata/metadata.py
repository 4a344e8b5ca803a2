"""TFLite Metadata into a flatbuffer and out of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.litert.entry import Entry, find_entry
from tfx_edge.litert.metadata.archive import append_files, read_files
from tfx_edge.litert.metadata.convey import all_files, from_tables, to_tables
from tfx_edge.litert.metadata.schema import IDENTIFIER, MODEL_METADATA
from tfx_edge.litert.metadata.tables import from_bytes, to_bytes
from tfx_edge.litert.packing import pack
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.model_metadata import ModelMetadata, TensorMetadata

NAME = b"TFLITE_METADATA"


def write_metadata(model: bytes, metadata: ModelMetadata, signature: str | None = None) -> bytes:
    """Writes metadata into a flatbuffer, in the place of any that is there.

    Operators, constants and other metadata (`min_runtime_version` among it) stay as they are. Files go into a ZIP archive behind the
    flatbuffer, without dates. The same model and metadata give the same bytes.

    Args:
        model: a flatbuffer.
        metadata: its inputs and outputs, in any order, those of the signature. One that isn't told of gets its name.
        signature: its name; None for `serving_default` or the only one.

    Returns:
        A file that runs as before; with associated files it is a ZIP archive as well.

    Raises:
        EdgeError: not a flatbuffer, or damaged; no such signature; it has no tensor of a name; two files have one name.
    """
    parsed = inspect.parse(model)
    entry = find_entry(parsed, signature, "the flatbuffer")
    graph = parsed.subgraphs[entry.subgraph]
    ordered = metadata.model_copy(
        update={
            "inputs": _in_order(graph, graph.inputs, entry.inputs, metadata.inputs, "input"),
            "outputs": _in_order(graph, graph.outputs, entry.outputs, metadata.outputs, "output"),
        }
    )
    content = to_bytes(MODEL_METADATA, to_tables(ordered, entry.subgraph), IDENTIFIER)
    _buffer(parsed).data = np.frombuffer(content, np.uint8)
    return append_files(pack(parsed), all_files(ordered))


def read_metadata(model: bytes) -> ModelMetadata | None:
    """The metadata of a flatbuffer, with what is in its files; None if it has none.

    What this package doesn't write, as tokenizers' options, is left out.

    Raises:
        EdgeError: not a flatbuffer, or it or its metadata is damaged.
    """
    parsed = inspect.parse(model)
    try:
        found = [parsed.buffers[m.buffer].data for m in parsed.metadata or () if m.name == NAME]
        if not found or found[0] is None:
            return None
        content = bytes(found[0])
        if content[4:8] != IDENTIFIER:
            raise ValueError(f"identifier {content[4:8]!r} instead of {IDENTIFIER!r}")
        tables = from_bytes(MODEL_METADATA, content)
        return from_tables(tables, _described_graph(parsed, tables.get("subgraph_metadata", [])), read_files(model))
    except (AttributeError, EdgeError, LookupError, TypeError, ValueError) as error:
        raise EdgeError(f"damaged TFLite Metadata: {' '.join(str(error).split()):.200}; export the model again") from error


def _in_order(
    graph: Any, tensors: Iterable[Any], names: Mapping[str, int], told: Sequence[TensorMetadata], what: str
) -> tuple[TensorMetadata, ...]:
    """The graph's own order, by which readers know which is which."""
    by_name = {tensor.name: tensor for tensor in told}
    unknown = sorted(by_name.keys() - names.keys())
    if unknown:
        raise EdgeError(
            f"metadata of {what} {unknown[0]!r}, which the model has not; it has {', '.join(map(repr, sorted(names)))}; name one of these"
        )
    called = {index: name for name, index in sorted(names.items(), reverse=True)}  # of several names the first one told of, or the first
    called |= {names[name]: name for name in sorted(by_name, reverse=True)}
    ordered = [called.get(int(index), graph.tensors[index].name.decode(errors="replace")) for index in tensors]
    return tuple(by_name.get(name, TensorMetadata(name=name)) for name in ordered)


def _buffer(parsed: Any) -> Any:
    """The buffer that holds the metadata; a new one where there is none yet."""
    for entry in parsed.metadata or ():
        if entry.name == NAME:
            return parsed.buffers[entry.buffer]
    buffer, entry = schema.BufferT(), schema.MetadataT()
    parsed.buffers = [*parsed.buffers, buffer]
    entry.name, entry.buffer = NAME, len(parsed.buffers) - 1
    parsed.metadata = [*(parsed.metadata or ()), entry]
    return buffer


def _described_graph(parsed: Any, told: Sequence[Mapping[str, Any]]) -> int:
    """The graph that `serving_default` or the only signature runs; in a file without either, the first one that is told of."""
    try:
        entry: Entry = find_entry(parsed, None, "the flatbuffer")
    except EdgeError:
        return next((place for place, tensors in enumerate(told) if tensors), 0)
    return entry.subgraph

"""Small files of an artifact, on any filesystem that TFX reaches; each appears whole or not at all."""

import contextlib
import posixpath
import uuid
from collections.abc import Iterable

from tfx.dsl.io import fileio

from tfx_edge.schemas import Config


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file under another name in the same folder, then renames it, so that no reader sees a part of it."""
    write_chunks(path, (content,))


def write_chunks(path: str, chunks: Iterable[bytes]) -> None:
    """The same for a file that is written a chunk at a time, as one that is too large for memory."""
    fileio.makedirs(posixpath.dirname(path))
    part = f"{path}.{uuid.uuid4().hex}.part"
    try:
        with fileio.open(part, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
        fileio.rename(part, path, overwrite=True)
    except BaseException:
        with contextlib.suppress(Exception):
            fileio.remove(part)
        raise


def read_bytes(path: str) -> bytes:
    """Reads a whole file."""
    with fileio.open(path, "rb") as file:
        content: bytes = file.read()
    return content


def write_document(path: str, document: Config) -> None:
    """Writes a document of `tfx_edge.schemas` as JSON."""
    write_bytes(path, document.to_json().encode())

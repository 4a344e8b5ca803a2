"""An edge model's files on any filesystem that TFX reaches; the names of those in edge/ are `schemas.release`'s."""

import hashlib
import posixpath

from tfx.dsl.io import fileio

from tfx_edge.components.documents import read_bytes

FLATBUFFER = "tflite"
"""In the folder of the serving model: TFMA's and TFX's name for it."""


def edge_files(uri: str) -> dict[str, str]:
    """What lies beside the flatbuffer of a Model artifact: the files' own paths by `edge/...`; none where the model has no edge/."""
    found = {}
    for here, _, names in fileio.walk(f"{uri}/edge"):
        for name in names:
            path = posixpath.join(_text(here), _text(name))
            found[posixpath.relpath(path, uri)] = path
    return found


def edge_digests(uri: str) -> dict[str, str]:
    """sha256 of each of `edge_files`, by the same names."""
    return {path: hashlib.sha256(read_bytes(file)).hexdigest() for path, file in sorted(edge_files(uri).items())}


def _text(path: object) -> str:
    return path.decode() if isinstance(path, bytes) else str(path)

"""The files that belong to a flatbuffer: a ZIP archive behind it, in the same file.

A ZIP archive is read from its end and a flatbuffer from its beginning, so the file is both. The entries are stored as they are, not
compressed, since the C++ reader of TFLite Metadata takes no others (`metadata_extractor.cc`: "Expected uncompressed zip archive").
"""

import zipfile
from collections.abc import Iterable
from io import BytesIO

from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.model_metadata import AssociatedFile

_NO_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that ZIP has
_UNIX, _PLAIN_FILE = 3, 0o100644 << 16  # the same bytes on every system


def append_files(flatbuffer: bytes, files: Iterable[AssociatedFile]) -> bytes:
    """A flatbuffer with files behind it, sorted by name; as it is where there are none.

    Raises:
        EdgeError: two files of one name have different contents.
    """
    contents: dict[str, bytes] = {}
    for file in files:
        if file.text is not None and contents.setdefault(file.name, file.text.encode()) != file.text.encode():
            raise EdgeError(f"two associated files are called {file.name!r} and differ; give one another name")
    if not contents:
        return flatbuffer
    whole = BytesIO()
    whole.write(flatbuffer)
    with zipfile.ZipFile(whole, "w") as archive:  # "w" starts where the stream stands; "a" would look for an archive in the flatbuffer
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _NO_DATE)
            entry.create_system, entry.external_attr = _UNIX, _PLAIN_FILE
            archive.writestr(entry, contents[name])
    return whole.getvalue()


def read_files(model: bytes) -> dict[str, bytes]:
    """The files behind a flatbuffer, by name; those that are compressed or damaged are left out."""
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            for entry in archive.infolist():
                if entry.compress_type == zipfile.ZIP_STORED:
                    files[entry.filename] = archive.read(entry)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, UnicodeDecodeError, ValueError):
        return files
    return files

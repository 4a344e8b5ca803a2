"""The files of an edge model that devices get, and the digest that identifies what they do."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tfx_edge.release.errors import ChannelError
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.export import Manifest
from tfx_edge.schemas.lineage import RunInfo
from tfx_edge.schemas.provenance import Provenance
from tfx_edge.schemas.release import GOLDEN, MANIFEST, MODEL, BundleFile

FLATBUFFER = "Format-Serving/tflite"
BOM = "edge/bom.cdx.json"
"""The bill of materials, where there is one."""


@dataclass(frozen=True)
class Bundle:
    """An edge model, read.

    Attributes:
        manifest: what it is.
        files: contents by their paths: tflite, edge/manifest.json, edge/golden.npz, ...
    """

    manifest: Manifest
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """sha256 over what the bundle does: over a line `<sha256>  <path>` for each file, sorted by path, without the bill of materials
        and with the manifest as it is without run and provenance. Another run that makes the same files makes the same bundle.
        """
        same = self.manifest.model_copy(update={"run": RunInfo(), "provenance": None}).to_json().encode()
        contents = {path: content for path, content in self.files.items() if path != BOM} | {MANIFEST: same}
        lines = [f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in sorted(contents.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def entries(self) -> tuple[BundleFile, ...]:
        """Its files, sorted by path."""
        return tuple(
            BundleFile(path=path, digest=hashlib.sha256(content).hexdigest(), size_bytes=len(content))
            for path, content in sorted(self.files.items())
        )

    def with_provenance(self, provenance: Provenance) -> "Bundle":
        """The same bundle; its manifest says where it comes from."""
        manifest = self.manifest.model_copy(update={"provenance": provenance})
        return replace(self, manifest=manifest, files={**self.files, MANIFEST: manifest.to_json().encode()})

    def with_file(self, path: str, content: bytes) -> "Bundle":
        """The same bundle with a file more, or another content of it."""
        return replace(self, files={**self.files, path: content})


def read_bundle(folder: Path) -> Bundle:
    """Reads an edge model as TFLiteExporter writes it: `Format-Serving/tflite`, and `edge/` beside it.

    Raises:
        ChannelError: a file is missing or a link, or the manifest can't be read or is another model's.
    """
    named = {MODEL: folder / FLATBUFFER}
    named |= {file.relative_to(folder).as_posix(): file for file in sorted((folder / "edge").rglob("*")) if not file.is_dir()}
    links = [str(file) for file in (folder / "edge", *named.values()) if file.is_symlink()]
    if links:
        raise ChannelError(f"{links[0]}: is a link; a bundle has files alone, so that nothing from elsewhere gets to devices")
    missing = [str(named.get(path, folder / path)) for path in (MODEL, MANIFEST, GOLDEN) if not named.get(path, folder / path).is_file()]
    if missing:
        raise ChannelError(f"{' and '.join(missing)}: missing; expected a folder as TFLiteExporter writes it")
    return bundle_of({path: file.read_bytes() for path, file in named.items()}, str(folder))


def bundle_of(files: Mapping[str, bytes], what: str) -> Bundle:
    """A bundle of files that are read already, checked.

    Args:
        files: contents by path.
        what: it is, for messages.

    Raises:
        ChannelError: the manifest can't be read, or is another model's.
    """
    try:
        manifest = Manifest.from_json(files[MANIFEST])
    except ConfigError as error:
        raise ChannelError(f"{what}: {MANIFEST}: {error}") from None
    digest = hashlib.sha256(files[MODEL]).hexdigest()
    if manifest.digest != digest:
        raise ChannelError(
            f"{what}: the manifest is of a flatbuffer with sha256 {manifest.digest}, the one here has {digest}; export it again"
        )
    return Bundle(manifest, files)

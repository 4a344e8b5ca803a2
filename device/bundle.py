"""A bundle on the device's disk: whether it is still the one that was released, and whether this device can use it."""

import hashlib
import json
from pathlib import Path
from typing import BinaryIO

from tfx_edge.schemas.release import MANIFEST, MODEL, DeviceInfo, Release
from tfx_edge.schemas.versions import runtime_supports

_ANY_BUNDLE = "litert-cpu"
"""The profile that needs no file but the flatbuffer, which every bundle has."""


def damage(folder: Path, release: Release) -> str | None:
    """What is wrong with the files of a release; None where each has the length and digest that it was released with."""
    for file in release.files:
        path = folder / file.path
        try:
            if path.stat().st_size != file.size_bytes:
                return f"{file.path} has {path.stat().st_size} bytes, released were {file.size_bytes}"
            with path.open("rb") as stream:
                if _sha256(stream) != file.digest:
                    return f"{file.path} has another sha256 than the one that was released"
        except OSError as error:
            return f"{file.path}: {error.strerror}"
    return None


def mismatch(folder: Path, release: Release, device: DeviceInfo) -> str | None:
    """Why a bundle isn't for a device, by its manifest; None where it is.

    Only what matters here is read of the manifest: newer exporters may say more in it than this client knows.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        digest, targets, runtime = manifest["digest"], list(manifest.get("targets", ())), manifest["minimum_runtime"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return f"{MANIFEST} can't be read: {type(error).__name__}"
    flatbuffer = next(file.digest for file in release.files if file.path == MODEL)
    if digest != flatbuffer:
        return f"{MANIFEST} is of a flatbuffer with sha256 {digest!r:.80}, the bundle's has {flatbuffer}"
    if targets and device.target not in targets and device.target != _ANY_BUNDLE:
        return f"the bundle is for {', '.join(map(str, targets))}, the device's target is {device.target}"
    if runtime is not None and not (isinstance(runtime, str) and runtime_supports(runtime, device.runtime)):
        return f"the model needs TensorFlow Lite {runtime}, the device has {device.runtime}"
    return None


def _sha256(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(2**20):
        digest.update(chunk)
    return digest.hexdigest()

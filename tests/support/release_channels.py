"""Release channels with keys, bundles of real tiny flatbuffers, devices that report, and a clock, without a pipeline."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.litert.golden import golden_vectors
from tfx_edge.release.bundle import Bundle, bundle_of
from tfx_edge.release.channel import Channel, open_channel
from tfx_edge.release.health import enrol
from tfx_edge.release.keys import load_keyring, public_key_of
from tfx_edge.release.new_keys import create_with_new_keys
from tfx_edge.release.publish import Published, publish
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import ChannelPolicy, DeviceInfo, HealthReport, Keyring, Manifest, Signature, SignedReport
from tfx_edge.schemas.health import HEALTH_TYPE
from tfx_edge.schemas.release import GOLDEN, MANIFEST, MODEL, Release

START = datetime(2030, 1, 1, tzinfo=timezone.utc)
"""Tests that need no client live in the future, so that a client's own clock never matters to them by accident."""


@cache
def flatbuffer(seed: int) -> bytes:
    """A dense layer on `x`, `[1, 4]` to `y`, `[1, 3]`; each seed has its weights."""
    x, y = Tensor("x", "float32", (1, 4)), Tensor("y", "float32", (1, 3))
    weights = Tensor("w", "float32", (3, 4), value=np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32))
    return pack([Graph("serving_default", (x,), (y,), (Op("FULLY_CONNECTED", (x, weights, None), (y,), schema.FullyConnectedOptionsT()),))])


@cache
def golden(seed: int) -> bytes:
    return golden_vectors(flatbuffer(seed))


def manifest(content: bytes, version: str = "", **changes: Any) -> Manifest:
    facts: dict[str, Any] = {
        "name": "dense",
        "version": version,
        "description": "y of x",
        "digest": hashlib.sha256(content).hexdigest(),
        "float_model_digest": "0" * 64,
        "plan_digest": None,
        "scheme": "float32",
        "signature": Signature(inputs=(), outputs=()),
        "size_bytes": len(content),
        "gzip_bytes": len(content),
        "float_size_bytes": len(content),
        "float_gzip_bytes": len(content),
        "minimum_runtime": None,
        "operators": {"FULLY_CONNECTED": 1},
    }
    return Manifest(**facts | changes)


def bundle(seed: int = 1, **changes: Any) -> Bundle:
    """A bundle whose self-test passes; `changes` are of its manifest."""
    content = flatbuffer(seed)
    document = manifest(content, **{"version": str(seed)} | changes).to_json().encode()
    return bundle_of({MODEL: content, MANIFEST: document, GOLDEN: golden(seed)}, f"bundle {seed}")


def judged_files(judged: Bundle) -> dict[str, str]:
    """What a gate's report says of a bundle's files."""
    return {path: hashlib.sha256(content).hexdigest() for path, content in judged.files.items() if path != MODEL}


def plain_bundle(seed: int = 1, **changes: Any) -> Bundle:
    """A bundle for tests that never run its model, of a few bytes that are made without LiteRT."""
    content = b"model %d" % seed
    document = manifest(content, **{"version": str(seed)} | changes).to_json().encode()
    return bundle_of({MODEL: content, MANIFEST: document, GOLDEN: b"golden %d" % seed}, f"bundle {seed}")


def failing_bundle(seed: int = 1) -> Bundle:
    """A bundle that is signed and whole, and whose model doesn't do what its golden vectors say."""
    return bundle(seed).with_file(GOLDEN, golden(seed + 1000))


def exported(folder: Path, made: Bundle) -> Path:
    """A bundle as TFLiteExporter lays it out."""
    for path, content in made.files.items():
        file = folder / ("Format-Serving/tflite" if path == MODEL else path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


@dataclass
class Device:
    """A device of the fleet that reports by hand, without the reference client."""

    info: DeviceInfo
    signer: CryptoSigner = field(default_factory=CryptoSigner.generate_ed25519)
    sequence: int = 0


@dataclass
class Fleet:
    """Channels in a folder, with keys beside it, and a clock that stands until it is moved."""

    folder: Path
    now: datetime = START
    devices: dict[str, Device] = field(default_factory=dict)

    @property
    def storage(self) -> LocalStorage:
        return LocalStorage(self.folder / "channels")

    @property
    def keyring(self) -> Keyring:
        return load_keyring(self.folder / "keys" / "keyring.json")

    def create(self, *names: str, policies: Mapping[str, ChannelPolicy] | None = None, **options: Any) -> "Fleet":
        for name in names:
            policy = (policies or {}).get(name, ChannelPolicy())
            create_with_new_keys(self.storage, name, self.folder / "keys" / "keyring.json", policy, now=self.now, **options)
        return self

    def open(self, name: str = "canary") -> Channel:
        return open_channel(self.storage, name)

    def publish(self, made: Bundle, name: str = "canary", **options: Any) -> Published:
        return publish(self.storage, name, made, self.keyring, **{"now": self.now, "who": "tester"} | options)

    def later(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now

    def report(
        self, release: Release, device_id: str, status: str = "healthy", name: str = "canary", runtime: str = "2.21.0", **changes: Any
    ) -> Path:
        """A device's signed word on a release, dropped where devices drop it."""
        device = self.devices.setdefault(device_id, Device(DeviceInfo(device_id=device_id, runtime=runtime)))
        device.sequence += 1
        facts: dict[str, Any] = {
            "device": device.info,
            "channel": name,
            "release": release.number,
            "bundle": release.bundle,
            "status": status,
            "sequence": device.sequence,
            "time": self.now,
        }
        envelope = Envelope(HealthReport(**facts | changes).to_json().encode(), HEALTH_TYPE, {})
        envelope.sign(device.signer)
        key = public_key_of(device.signer.public_key)
        enrolment = enrol(device_id, key, self.keyring, self.open(name).policy.fleet_keys)
        file = self.folder / "channels" / name / "health" / device_id / f"{device.sequence}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SignedReport(report=envelope.to_dict(), enrolment=enrolment).to_json())
        return file


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but locks, to be compared."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file() and f.name != "lock"}

"""The reference client's settings, what it remembers, and what it tells of itself."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.release import DeviceInfo, Digest, Name, RuntimeVersion
from tfx_edge.schemas.versions import TFLITE_VERSION


def is_url(place: str) -> bool:
    """Whether a place is on an HTTP server; otherwise it is a folder.

    >>> is_url("https://models.example/canary"), is_url("/srv/canary")
    (True, False)
    """
    return place.startswith(("http://", "https://"))


class DeviceConfig(Config):
    """`device.json`: who the device is, and the channel it follows. Relative paths are meant from the file's folder."""

    device_id: Name
    channel: Name = Field(description="Its name, which what it offers must bear.")
    source: str = Field(description="Where the channel is: a folder, or http(s)://, with metadata/ and targets/ below it.")
    root: str = Field(description="Path of the channel's root.json that the device is shipped with: all its trust starts there.")
    state: str = Field(min_length=1, description="Folder that the client owns: new, empty, or its own of before.")
    target: str = Field(default="litert-cpu", description="Profile of the device's toolchain.")
    region: str = Field(default="", description="Tag that cohorts look at.")
    runtime: RuntimeVersion | None = Field(
        default=None, description="TensorFlow Lite version that the device's runtime is made from; None: that of the LiteRT it came with."
    )
    health: str | None = Field(
        default=None, description="Where reports go: a folder, or a URL to PUT at; None: health/ of the source where that is a folder."
    )
    enrolment: str | None = Field(
        default=None, description="Path of the fleet's envelope that vouches for the device; None: enrolment.json in the state folder."
    )
    selftest_seconds: float = Field(
        default=60, gt=0, description="A self-test that takes longer is tried again; the third time it has failed."
    )
    max_bundle_bytes: int = Field(default=2**31, ge=1, description="A release that is larger isn't downloaded.")
    keep_versions: int = Field(default=2, ge=2, description="Models that stay on the device: the current one and the last good ones.")

    def check(self) -> None:
        for name in ("source", "health"):
            place = getattr(self, name)
            if place and "://" in place and not is_url(place):
                raise ValueError(f"{name} is {place}; expected a folder, or http:// or https://")

    @property
    def info(self) -> DeviceInfo:
        """What a cohort looks at."""
        return DeviceInfo(device_id=self.device_id, target=self.target, runtime=self.runtime or TFLITE_VERSION, region=self.region)

    @property
    def reports_to(self) -> str | None:
        """Folder or URL below which health reports go; None where there is none."""
        return self.health or (None if is_url(self.source) else f"{self.source.rstrip('/')}/health")


class Verdict(Config):
    """What the device made of a release."""

    release: int = Field(ge=1)
    bundle: Digest
    platform: str = Field(description="What it was tried on: target, TensorFlow Lite and LiteRT. Another one may judge otherwise.")
    status: Literal["healthy", "failed"]
    reason: str = Field(default="", description="failed: what went wrong, one line.")
    tried: bool = Field(default=True, description="False: refused for its size; after a change of settings it may do.")
    reported: bool = Field(default=False, description="Whether a signed report is sent, or lies ready to be.")


class DeviceState(Config):
    """`state.json`: what the client remembers beside the models themselves."""

    sequence: int = Field(default=0, ge=0, description="Of the last health report.")
    verdicts: tuple[Verdict, ...] = Field(default=(), description="Oldest first; the last ones alone.")
    interrupted: dict[str, int] = Field(
        default_factory=dict, description="By bundle: self-tests one after the other that took too long, or were killed from outside."
    )
    last_update: datetime | None = Field(default=None, description="UTC: when the channel was last asked.")
    last_message: str = Field(default="", description="What came of it, one line.")


class DeviceStatus(Config):
    """What the client tells of itself."""

    device: DeviceInfo
    channel: str
    release: int | None = Field(default=None, description="The one that runs; None: none.")
    bundle: Digest | None = None
    folder: str | None = Field(default=None, description="Of the bundle that runs: tflite, edge/manifest.json, ...")
    versions: tuple[int, ...] = Field(default=(), description="Releases that are on the device, newest first.")
    failed: tuple[Verdict, ...] = Field(default=(), description="Releases that the device didn't take, or took back.")
    reports: str = Field(description="Whether health reports are sent; if not, why.")
    waiting_reports: int = Field(default=0, ge=0, description="Reports that couldn't be delivered yet.")
    last_update: datetime | None = Field(default=None, description="UTC.")
    last_message: str = ""

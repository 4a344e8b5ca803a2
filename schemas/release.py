"""What a release channel publishes to devices: its releases and their bundles. TUF's metadata vouches for every byte of it."""

import hashlib
import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.versions import runtime_supports, version_numbers

CHANNELS = ("canary", "beta", "stable")
"""From the first that a release comes to, to the last."""

RELEASES = "releases.json"
"""TUF's target that a device reads first: a `ReleaseIndex`."""

MODEL, MANIFEST, GOLDEN = "tflite", "edge/manifest.json", "edge/golden.npz"
"""Files of a bundle: the flatbuffer, what it is, and its self-test. A bundle has more, such as `model_vela.tflite`."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.200}: expected letters, digits, '.', '_' and '-', at most 128, a letter or digit first")
    return name


def _checked_digest(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest!r:.100}: expected the 64 hexadecimal digits of a sha256")
    return digest


def _checked_version(text: str) -> str:
    if version_numbers(text) is None:
        raise ValueError("expected a version, for example 2.21.0")
    return text


Name = Annotated[str, AfterValidator(_checked_name)]
"""May stand in a path and a URL: a channel's, a device's."""

Digest = Annotated[str, AfterValidator(_checked_digest)]
"""A sha256 in hexadecimal digits."""

RuntimeVersion = Annotated[str, AfterValidator(_checked_version)]
"""TensorFlow Lite's, which compares as numbers."""


class DeviceInfo(Config):
    """What a cohort looks at."""

    device_id: Name = Field(description="Unique in the fleet.")
    target: str = Field(default="litert-cpu", description="Profile of the device's toolchain, as in schemas/targets.")
    runtime: RuntimeVersion = Field(description="TensorFlow Lite version that the device's runtime is made from.")
    region: str = Field(default="", description="A tag of your choosing.")


class Cohort(Config):
    """Which devices a release is for. Empty: all of them."""

    targets: tuple[str, ...] = Field(default=(), description="Profiles, one of which must be the device's; empty: any.")
    minimum_runtime: RuntimeVersion | None = Field(default=None, description="Oldest TensorFlow Lite version that the device may have.")
    below_runtime: RuntimeVersion | None = Field(default=None, description="The device's version must be older than this one.")
    regions: tuple[str, ...] = Field(default=(), description="Tags, one of which must be the device's; empty: any.")

    def check(self) -> None:
        low, high = (version_numbers(version) if version else None for version in (self.minimum_runtime, self.below_runtime))
        if low is not None and high is not None and high <= low:
            raise ValueError(f"minimum_runtime {self.minimum_runtime} and below_runtime {self.below_runtime} leave no version between them")
        if "" in self.targets:
            raise ValueError("targets has an empty name; leave it out for any target")

    def admits(self, device: DeviceInfo) -> bool:
        """Whether a device belongs to it.

        >>> from tfx_edge.schemas import Cohort, DeviceInfo
        >>> Cohort(regions=("eu",), minimum_runtime="2.9").admits(DeviceInfo(device_id="a", runtime="2.21.0", region="eu"))
        True
        """
        return (
            (not self.targets or device.target in self.targets)
            and (not self.regions or device.region in self.regions)
            and runtime_supports(self.minimum_runtime, device.runtime)
            and (self.below_runtime is None or not runtime_supports(self.below_runtime, device.runtime))
        )


class BundleFile(Config):
    """One file of a bundle; its content is TUF's target `bundles/<bundle>/<path>`."""

    path: str = Field(description="Within the bundle: tflite, edge/manifest.json, ...")
    digest: Digest = Field(description="sha256.")
    size_bytes: int = Field(ge=0)

    @field_validator("path")
    @classmethod
    def _stays_within(cls, path: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*){0,7}", path):
            raise ValueError(
                f"{path!r:.200}: expected a relative path of letters, digits, '.', '_', '-' and '/', no part of which starts with '.'"
            )
        return path


class Release(Config):
    """A bundle that is offered to the devices of a cohort, or to a share of them."""

    number: int = Field(ge=1, description="Counts up in a channel and never comes twice; a device goes to higher ones alone.")
    bundle: Digest = Field(description="sha256 that identifies what the bundle does, whichever run made it.")
    files: tuple[BundleFile, ...]
    cohort: Cohort = Cohort()
    minimum_runtime: str | None = Field(default=None, description="The manifest's: no older runtime can run the model.")
    share: float = Field(default=1, ge=0, le=1, description="Of the cohort's devices, chosen by `rollout_position`.")
    published: datetime = Field(description="UTC: when it came out; a new number for its place alone leaves it.")
    share_since: datetime = Field(description="UTC: when it got its share.")
    rollback_of: int | None = Field(default=None, description="The release that this one takes back; None for a new one.")

    def check(self) -> None:
        paths = [file.path for file in self.files]
        if len(set(paths)) != len(paths):
            raise ValueError(f"release {self.number}: files has a path twice")
        missing = [path for path in (MODEL, MANIFEST, GOLDEN) if path not in paths]
        if missing:
            raise ValueError(f"release {self.number}: files lack {' and '.join(missing)}")

    def admits(self, device: DeviceInfo) -> bool:
        """Whether the release is meant for a device: cohort, runtime and share."""
        return (
            self.cohort.admits(device)
            and runtime_supports(self.minimum_runtime, device.runtime)
            and rollout_position(self.bundle, device.device_id) < self.share
        )

    def target_path(self, file: BundleFile) -> str:
        """TUF's name of a file of the bundle."""
        return f"bundles/{self.bundle}/{file.path}"


class ReleaseIndex(Config):
    """`releases.json`: what a channel offers, newest first. A device takes the first that admits it."""

    channel: Name
    releases: tuple[Release, ...] = ()

    def check(self) -> None:
        numbers = [release.number for release in self.releases]
        if numbers != sorted(set(numbers), reverse=True):
            raise ValueError(f"releases are numbered {numbers}; expected falling numbers")

    def offered(self, device: DeviceInfo) -> Release | None:
        """The newest release that admits a device."""
        return next((release for release in self.releases if release.admits(device)), None)


def rollout_position(bundle: str, device_id: str) -> float:
    """Where a device stands in the rollout of a bundle, in [0, 1): it gets the bundle once the share is larger.

    It is a hash of both, so a device that has a bundle keeps it while the share grows, and other devices come first with another bundle.

    >>> 0 <= rollout_position("0" * 64, "device-1") < 1
    True
    """
    digest = hashlib.sha256(f"{bundle}:{device_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48

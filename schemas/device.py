"""The reference client's settings and what it remembers."""

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.release import Name


class DeviceConfig(Config):
    """`device.json`: who the device is, and the channel it follows."""

    device_id: Name
    channel: Name = Field(description="Its name, which what it offers must bear.")
    source: str = Field(description="Where the channel is: a folder, or http(s)://, with metadata/ and targets/ below it.")
    state: str = Field(description="Folder that the client owns.")
    target: str = Field(default="litert-cpu", description="Profile of the device's toolchain.")
    region: str = Field(default="", description="Tag that cohorts look at.")
    health: str | None = Field(
        default=None, description="Where reports go: a folder, or a URL to PUT at; None: health/ of the source where that is a folder."
    )
    selftest_seconds: float = Field(default=60, gt=0, description="A self-test that takes longer has failed.")
    max_bundle_bytes: int = Field(default=2**31, ge=1, description="A release that is larger isn't downloaded.")
    keep_versions: int = Field(default=2, ge=2, description="Models that stay on the device: the current one and the last good ones.")

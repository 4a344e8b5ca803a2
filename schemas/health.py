"""What devices say of the model they run, and how a fleet vouches for its devices. Both are signed, as DSSE envelopes."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.release import DeviceInfo, Digest, Name

HEALTH_TYPE = "application/vnd.tfx-edge.health+json"
ENROLMENT_TYPE = "application/vnd.tfx-edge.enrolment+json"
"""Payload types of the envelopes."""


class Enrolment(Config):
    """A device's public key, signed by one of the fleet's keys. The device sends it along with its reports."""

    device_id: Name
    key: PublicKey


class HealthReport(Config):
    """What a device made of a release, signed with the device's key. Its latest report on a release is what counts."""

    device: DeviceInfo
    channel: str
    release: int = Field(ge=1)
    bundle: Digest
    status: Literal["healthy", "failed"]
    reason: str = Field(default="", max_length=1000, description="failed: what went wrong, one line.")
    sequence: int = Field(ge=1, description="Counts up on the device: a replayed report is older than one that is there.")
    time: datetime = Field(description="UTC, by the device's clock.")


class SignedReport(Config):
    """A file that a device drops at `health/<device id>/<sequence>.json`: two DSSE envelopes, as securesystemslib writes them."""

    report: dict[str, object] = Field(description="Payload: a HealthReport; signed by the device's key.")
    enrolment: dict[str, object] = Field(description="Payload: an Enrolment; signed by a fleet key.")

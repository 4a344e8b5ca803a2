"""The rules of a release channel: how far and when a release spreads by itself, when it is stopped, how long signatures last."""

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.release import Name

POLICY = "policy.json"
"""TUF's target that holds it."""

LONGEST_DAYS = 36_500
"""A century: times have ends that dates can hold."""


class PublicKey(Config):
    """A public key, in TUF's terms."""

    keytype: str = "ed25519"
    scheme: str = "ed25519"
    public: str = Field(description="Ed25519: 64 hexadecimal digits; other kinds: PEM.")


class HealthRule(Config):
    """What must hold for a release to go on by itself."""

    min_age_hours: float = Field(default=24, ge=0, le=24 * LONGEST_DAYS, description="Since it got the share that it has.")
    min_healthy_devices: int = Field(default=1, ge=0, description="Devices whose latest report on it says healthy.")
    max_failure_rate: float = Field(default=0.02, ge=0, le=1, description="Failed devices by reporting devices.")


class RolloutStep(Config):
    """A share of the devices, and what must hold before the next step, or the next channel."""

    share: float = Field(gt=0, le=1)
    go_on: HealthRule = HealthRule()


class EmergencyStop(Config):
    """When a release is taken back by itself, here and in every later channel."""

    max_failure_rate: float = Field(default=0.1, ge=0, le=1, description="Failed devices by reporting devices; more than that stops.")
    min_reports: int = Field(default=3, ge=1, description="Devices that must have reported; with fewer nothing is stopped.")


class Lifetimes(Config):
    """How long signatures last. `channel tick` renews what online keys sign, well before it ends."""

    root_days: float = Field(default=365, gt=0, le=LONGEST_DAYS)
    targets_days: float = Field(default=90, gt=0, le=LONGEST_DAYS)
    snapshot_days: float = Field(default=7, gt=0, le=LONGEST_DAYS)
    timestamp_days: float = Field(default=3, gt=0, le=LONGEST_DAYS, description="How long an attacker can hide a release from devices.")


class ChannelPolicy(Config):
    """`policy.json` of a channel."""

    steps: tuple[RolloutStep, ...] = Field(default=(RolloutStep(share=1),), min_length=1, description="Shares that a release grows to.")
    promote_to: Name | None = Field(default=None, description="Channel that a release goes to after the last step; None: it stays.")
    emergency_stop: EmergencyStop = EmergencyStop()
    lifetimes: Lifetimes = Lifetimes()
    fleet_keys: tuple[PublicKey, ...] = Field(
        default=(), description="Keys that sign devices' enrolments; reports of other devices count for nothing."
    )
    revoked_devices: tuple[Name, ...] = Field(default=(), description="Devices whose reports count for nothing any more.")
    keep_bundles: int = Field(default=10, ge=1, description="Bundles that stay for a rollback besides those on offer.")

    def check(self) -> None:
        shares = [step.share for step in self.steps]
        if shares != sorted(set(shares)):
            raise ValueError(f"steps have the shares {shares}; expected rising ones")

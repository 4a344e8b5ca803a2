"""How a channel stands, for people and dashboards."""

from datetime import datetime

from pydantic import Field

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.release import Cohort


class RoleStatus(Config):
    """A role of TUF's."""

    role: str
    version: int
    expires: datetime = Field(description="UTC: devices refuse the channel from then on.")
    expired: bool
    keys: tuple[str, ...] = Field(description="TUF's ids of its keys.")
    threshold: int = Field(description="How many of them must sign.")


class ReleaseStatus(Config):
    """A release on offer."""

    number: int
    bundle: str
    model: str = Field(description="Name and version by its manifest.")
    cohort: Cohort
    share: float
    published: datetime
    rollback_of: int | None
    healthy: int = Field(description="Devices whose latest report on it says so.")
    failed: int = Field(description="Devices whose latest report on it says so.")
    rules: str = Field(description="What the policy says of it: stop, grow, promote, hold or stay, and why.")


class ChannelStatus(Config):
    """A channel whose metadata and files were verified."""

    channel: str
    roles: tuple[RoleStatus, ...]
    releases: tuple[ReleaseStatus, ...] = Field(description="Newest first.")
    promote_to: str | None
    refused_reports: dict[str, str] = Field(default_factory=dict, description="Health reports that count for nothing, by path, and why.")

    @property
    def expired(self) -> tuple[str, ...]:
        """Roles whose signatures have ended: devices take nothing from the channel until they are signed anew."""
        return tuple(role.role for role in self.roles if role.expired)

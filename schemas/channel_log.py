"""Who did what to a release channel, and where each release comes from."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from tfx_edge.schemas.channel_policy import ChannelPolicy
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.provenance import Provenance
from tfx_edge.schemas.release import Release

LOG = "log.json"
"""TUF's target that holds it; devices don't read it."""

Action = Literal["init", "publish", "promote", "grow", "stop", "rollback", "renumber", "expire", "policy", "rotate-key"]


class LogEntry(Config):
    """One change of a channel."""

    time: datetime = Field(description="UTC.")
    action: Action
    who: str = Field(description="The user or service account that did it, as the machine calls it.")
    key_id: str = Field(description="Of the key that signed the targets.")
    release: Release | None = Field(default=None, description="As it was then; None where the action concerns none.")
    provenance: Provenance | None = Field(default=None, description="publish: where the bundle comes from.")
    from_channel: str | None = Field(default=None, description="promote: the channel it came from.")
    policy: ChannelPolicy | None = Field(default=None, description="init, policy: the rules since then.")
    reason: str = ""


class ChannelLog(Config):
    """`log.json` of a channel, oldest first."""

    entries: tuple[LogEntry, ...] = ()

    @property
    def releases(self) -> dict[int, Release]:
        """Every release there ever was, by its number, as it was last."""
        return {entry.release.number: entry.release for entry in self.entries if entry.release is not None}

    @property
    def taken_back(self) -> dict[str, LogEntry]:
        """Bundles that were stopped or rolled back and haven't been gone back to since, with the entry that did it."""
        releases, found = self.releases, dict[str, LogEntry]()
        for entry in self.entries:
            if entry.release is None:
                continue
            if entry.action == "stop":
                found[entry.release.bundle] = entry
            elif entry.action == "rollback" and entry.release.rollback_of is not None:  # others may concern such a release as well
                found.pop(entry.release.bundle, None)
                taken = releases.get(entry.release.rollback_of)
                if taken is not None and taken.bundle not in {entry.release.bundle, *found}:
                    found[taken.bundle] = entry
        return found

    @property
    def last_number(self) -> int:
        """The highest release number that was ever given, 0 without one."""
        return max((entry.release.number for entry in self.entries if entry.release is not None), default=0)

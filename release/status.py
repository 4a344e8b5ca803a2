"""How a channel stands."""

from contextlib import suppress
from datetime import datetime

from tuf.api.metadata import Signed

from tfx_edge.release.channel import Channel, open_channel, utc_now, verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.health import read_health
from tfx_edge.release.promote import handed_on
from tfx_edge.release.publish import newest_release
from tfx_edge.release.root import ROLES
from tfx_edge.release.rules import Judgement, judge
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_status import ChannelStatus, ReleaseStatus, RoleStatus
from tfx_edge.schemas.export import Manifest
from tfx_edge.schemas.release import MANIFEST, Release


def status(storage: Storage, name: str, now: datetime | None = None) -> ChannelStatus:
    """Verifies a channel with all of its files, and says how it stands.

    Args:
        storage: where channels lie.
        name: of the channel.
        now: the time; None: this moment.

    Raises:
        ChannelError: there is no such channel, or something in it isn't what its keys signed.
    """
    now = now or utc_now()
    channel = open_channel(storage, name)
    verify_files(channel)
    health = read_health(channel)
    releases = []
    for release in channel.index.releases:
        counts = health.counts(release.number)
        newest = release == newest_release(channel.index, release.cohort)
        judgement = _told(channel, release, judge(release, channel.policy, counts, now, newest=newest))
        releases.append(
            ReleaseStatus(
                number=release.number,
                bundle=release.bundle,
                model=_model(channel, release),
                cohort=release.cohort,
                share=release.share,
                published=release.published,
                rollback_of=release.rollback_of,
                healthy=counts.healthy,
                failed=counts.failed,
                rules=f"{judgement.action}: {judgement.text}",
            )
        )
    return ChannelStatus(
        channel=name,
        roles=tuple(_role(channel, role, now) for role in ROLES),
        releases=tuple(releases),
        promote_to=channel.policy.promote_to,
        refused_reports=dict(health.refused),
    )


def _told(channel: Channel, release: Release, judgement: Judgement) -> Judgement:
    """The judgement, without a promotion that has been made."""
    to = channel.policy.promote_to
    if judgement.action == "promote" and to is not None:
        with suppress(ChannelError):  # that channel's own status tells
            if handed_on(release, open_channel(channel.storage, to)):
                return Judgement("stay", f"promoted to {to}")
    return judgement


def _model(channel: Channel, release: Release) -> str:
    [file] = (file for file in release.files if file.path == MANIFEST)
    manifest = Manifest.from_json(channel.read(release.target_path(file)))
    return " ".join(part for part in (manifest.name, manifest.version) if part)


def _role(channel: Channel, role: str, now: datetime) -> RoleStatus:
    parts: tuple[Signed, ...] = (channel.root.signed, channel.targets.signed, channel.snapshot.signed, channel.timestamp.signed)
    [signed] = (part for part in parts if part.type == role)
    keys = channel.root.signed.roles[role]
    return RoleStatus(
        role=role,
        version=signed.version,
        expires=signed.expires,
        expired=signed.is_expired(now),
        keys=tuple(keys.keyids),
        threshold=keys.threshold,
    )

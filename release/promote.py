"""Hands a release from one channel to the next."""

from datetime import datetime

from tfx_edge.release.bundle import bundle_of
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.health import read_health
from tfx_edge.release.publish import Published, newest_release, publish
from tfx_edge.release.rollback import offered
from tfx_edge.release.rules import last_rule, unmet
from tfx_edge.release.stopped import refuse_stopped_before
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.provenance import Provenance
from tfx_edge.schemas.release import Release


class NotReadyError(ChannelError):
    """The channel's rules hold a release back."""


def promote(
    storage: Storage,
    source: str,
    destination: str,
    keyring: Keyring,
    *,
    release: int | None = None,
    force: bool = False,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> Published:
    """Publishes a release of one channel in another one, to the share of devices that the first step there says.

    Args:
        storage: where both channels lie.
        source: the channel that offers it.
        destination: the channel that gets it.
        keyring: has the destination's keys of targets, snapshot and timestamp.
        release: its number in the source; None: the newest.
        force: passes over the source's rules; needs a reason.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Raises:
        NotReadyError: the rules of the source hold it back.
        ChannelError: there is no such release on offer; it was taken back in the destination, or stopped in a channel before that; a
            channel is busy or damaged.
    """
    if source == destination:
        raise ChannelError(f"{source}: promotes to itself; name another channel")
    if force and not reason:
        raise ChannelError("force passes over the channel's rules; give a reason, which the log keeps")
    now = now or utc_now()
    channel = open_channel(storage, source, keyring)
    wanted = offered(channel, release)
    if not force:
        _require_ready(channel, wanted, now)
    return hand_on(channel, wanted, destination, keyring, reason=reason, who=who, now=now)


def hand_on(
    channel: Channel, release: Release, destination: str, keyring: Keyring, *, reason: str, who: str | None, now: datetime
) -> Published:
    """Publishes a release's verified files in another channel; see `promote`, which has asked the rules."""
    files = {file.path: channel.read(release.target_path(file)) for file in release.files}
    bundle = bundle_of(files, f"{channel.name}: release {release.number}")
    refuse_stopped_before(channel.storage, destination, release.bundle, keyring)
    return publish(
        channel.storage,
        destination,
        bundle,
        keyring,
        cohort=release.cohort,
        provenance=provenance_of(channel, release),
        from_channel=channel.name,
        reason=reason,
        who=who,
        now=now,
    )


def handed_on(release: Release, destination: Channel) -> bool:
    """Whether a channel got a release's bundle since the release came out, whatever became of it there."""
    entries = (entry for entry in destination.log.entries if entry.release is not None and entry.time >= release.published)
    return any(entry.release is not None and entry.release.bundle == release.bundle for entry in entries)


def provenance_of(channel: Channel, release: Release) -> Provenance | None:
    """Where a release's bundle comes from, as it was published first."""
    entries = (entry for entry in channel.log.entries if entry.release is not None and entry.release.bundle == release.bundle)
    return next((entry.provenance for entry in entries if entry.provenance is not None), None)


def _require_ready(channel: Channel, release: Release, now: datetime) -> None:
    what = f"{channel.name}: release {release.number}"
    if release.rollback_of is not None:
        raise NotReadyError(f"{what} took back release {release.rollback_of} and isn't a new one; force it with a reason if it must be")
    if newest_release(channel.index, release.cohort) != release:
        raise NotReadyError(f"{what} isn't the newest for its devices; force it with a reason if it must be")
    if release.share < channel.policy.steps[-1].share:
        raise NotReadyError(f"{what} is offered to {release.share:.0%} of devices; it needs {channel.policy.steps[-1].share:.0%}")
    lacking = unmet(last_rule(channel.policy), release, read_health(channel).counts(release.number), now)
    if lacking:
        raise NotReadyError(f"{what} needs {', '.join(lacking)}")

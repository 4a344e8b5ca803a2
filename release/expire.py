"""Withdraws what devices no longer need: its files go, and it can't come back by a rollback."""

from datetime import datetime, timedelta

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.publish import newest_release
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.channel_policy import LONGEST_DAYS
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import Release


def expire(
    storage: Storage,
    name: str,
    keyring: Keyring,
    *,
    release: int | None = None,
    older_than_days: float | None = None,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> tuple[Release, ...]:
    """Withdraws releases that aren't the newest of their cohort, those that a rollback could go back to as well.

    The files are removed with the channel's next change, or when a tick next signs it anew: until then a device that was reading them may
    finish.

    Args:
        storage: where channels lie.
        name: of the channel.
        keyring: has the keys of targets, snapshot and timestamp.
        release: number of the one to withdraw.
        older_than_days: withdraws those that were published longer ago.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Returns:
        What was withdrawn; nothing changes where it is nothing.

    Raises:
        ChannelError: neither or both of `release` and `older_than_days` are given; the release is the newest of its cohort, or isn't there;
            the channel is busy or damaged.
    """
    if (release is None) == (older_than_days is None):
        raise ChannelError("expire takes the number of a release, or an age in days; give one of them")
    if older_than_days is not None and not 0 <= older_than_days <= LONGEST_DAYS:
        raise ChannelError(f"expire: {older_than_days} days; expected 0 to {LONGEST_DAYS}")
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        expirable = _expirable(channel)
        if older_than_days is not None:
            before = now - timedelta(days=older_than_days)
            withdrawn = tuple(one for one in expirable if one.published < before)
        else:
            withdrawn = tuple(one for one in expirable if one.number == release)
            if not withdrawn:
                raise ChannelError(f"{name}: release {release} can't be withdrawn: {_why(channel, release)}")
        if not withdrawn:
            return ()
        numbers = {one.number for one in withdrawn}
        releases = tuple(one for one in channel.index.releases if one.number not in numbers)
        actor = who or current_actor()
        entries = [LogEntry(time=now, action="expire", who=actor, key_id="", release=one, reason=reason) for one in withdrawn]
        commit(channel, keyring, entries, now=now, index=channel.index.model_copy(update={"releases": releases}))
    return withdrawn


def _expirable(channel: Channel) -> list[Release]:
    """Whatever is on offer but the newest of each cohort, and past releases whose files are kept and that nothing on offer shares."""
    offered = {one.number: one for one in channel.index.releases}
    kept = {one.bundle for one in offered.values()}
    older = [one for one in offered.values() if newest_release(channel.index, one.cohort) != one]
    past = [
        one
        for number, one in sorted(channel.log.releases.items(), reverse=True)
        if number not in offered and one.bundle not in kept and one.target_path(one.files[0]) in channel.targets.signed.targets
    ]
    return older + past


def _why(channel: Channel, number: int | None) -> str:
    if number not in channel.log.releases:
        return "there never was one of that number"
    if number in {one.number for one in channel.index.releases}:
        return "it is the newest for its devices; stop it, or publish another one"
    return "its files are gone already, or a release on offer has the same"

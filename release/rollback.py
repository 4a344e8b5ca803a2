"""Takes a release back. The older bundle comes again under a newer number, so that devices accept it; nothing old is replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tfx_edge.release.actor import current_actor
from tfx_edge.release.again import Offer, Return, before, missing_files, offer_without
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.publish import Published
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import Cohort, Release


@dataclass(frozen=True)
class Stopped:
    """A release that was stopped.

    Attributes:
        release: as it was on offer.
        back: what its devices get instead; None where there was nothing to go back to.
    """

    release: Release
    back: Release | None


def rollback(
    storage: Storage,
    name: str,
    keyring: Keyring,
    *,
    release: int | None = None,
    to: int | None = None,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> Published:
    """Goes back to an older release.

    Args:
        storage: where channels lie.
        name: of the channel.
        keyring: has the keys of targets, snapshot and timestamp.
        release: number of the one to take back; None: the newest.
        to: number of the one to go back to, which may have been taken back itself; what came between isn't offered to its devices any
            more. None: the last one before that was offered to all of them and wasn't taken back; rollouts since then go on.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Returns:
        The new release, with the older bundle; it is offered to all devices of the cohort at once, and goes to no other channel.

    Raises:
        ChannelError: there is no such release on offer, or none to go back to whose files are still there; the channel is busy or damaged.
    """
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        taken = _stopped_last(channel) if to is not None and release is None and not channel.index.releases else offered(channel, release)
        gone = [taken] if taken in channel.index.releases else []
        if to is not None:
            older: Release | None = _named(channel, taken, to)
            if older is not None and older.bundle in channel.log.taken_back and not reason:
                raise ChannelError(f"{name}: release {to} has a model that was taken back here; give a --reason to bring it back")
            gone += [one for one in channel.index.releases if one.cohort == taken.cohort and one.number < taken.number]
        else:
            older = before(channel, taken)
        if older is None:
            raise ChannelError(
                f"{name}: no release before {taken.number} is left for {_cohort(taken.cohort)}; publish another model, or withdraw this "
                "one with `tfx-edge channel stop`"
            )
        offer = offer_without(channel, gone, [Return(taken, older)], now)
        entries = _entries(offer, reason, who or current_actor(), now)
        [again] = offer.again
        return Published(commit(channel, keyring, entries, now=now, index=offer.index), again, changed=True)


def stop(
    storage: Storage,
    name: str,
    keyring: Keyring,
    *,
    release: int | None = None,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> Published | None:
    """Takes a release off the channel, and goes back to the one before where there is one. Its bundle is refused here from then on.

    Args:
        storage: where channels lie.
        name: of the channel.
        keyring: has the keys of targets, snapshot and timestamp.
        release: its number; None: the newest. Releases of the same bundle for other cohorts are stopped with it.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Returns:
        The release that devices go back to; None where there was none before: devices that took the stopped one keep it until a newer
        one comes.

    Raises:
        ChannelError: there is no such release on offer; the channel is busy or damaged.
    """
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        taken = offered(channel, release)
        channel, stopped = _stop(channel, keyring, {taken.bundle: reason}, who or current_actor(), now)
    [back] = (one.back for one in stopped if one.release == taken)
    return None if back is None else Published(channel, back, changed=True)


def stop_bundles(
    storage: Storage, name: str, keyring: Keyring, reasons: Mapping[str, str], *, who: str | None = None, now: datetime | None = None
) -> tuple[Stopped, ...]:
    """Stops all releases of some bundles in one step, so that none of these is what the devices of another go back to.

    Args:
        storage: where channels lie.
        name: of the channel.
        keyring: has the keys of targets, snapshot and timestamp.
        reasons: why, by bundle.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Returns:
        What was stopped, newest first; nothing changes where none of the bundles is on offer.

    Raises:
        ChannelError: the channel is busy or damaged.
    """
    with storage.lock(f"{name}/lock"):
        return _stop(open_channel(storage, name, keyring), keyring, reasons, who or current_actor(), now or utc_now())[1]


def _stop(channel: Channel, keyring: Keyring, reasons: Mapping[str, str], who: str, now: datetime) -> tuple[Channel, tuple[Stopped, ...]]:
    taken = [release for release in channel.index.releases if release.bundle in reasons]
    if not taken:
        return channel, ()
    ways = {release: before(channel, release, reasons) for release in taken}
    offer = offer_without(channel, taken, [Return(release, older) for release, older in ways.items() if older is not None], now)
    entries = [LogEntry(time=now, action="stop", who=who, key_id="", release=one, reason=reasons[one.bundle]) for one in taken]
    entries += _entries(offer, "; ".join(dict.fromkeys(reasons[one.bundle] for one in taken)), who, now)
    back = {(one.cohort, one.bundle): one for one in offer.again}
    stopped = (Stopped(release, None if older is None else back[release.cohort, older.bundle]) for release, older in ways.items())
    return commit(channel, keyring, entries, now=now, index=offer.index), tuple(stopped)


def _stopped_last(channel: Channel) -> Release:
    """The release that was stopped last, where its stop left nothing on offer.

    Raises:
        ChannelError: none was.
    """
    for entry in reversed(channel.log.entries):
        if entry.action == "stop" and entry.release is not None:
            return entry.release
    return offered(channel, None)


def offered(channel: Channel, number: int | None) -> Release:
    """A release on offer.

    Args:
        channel: that offers it.
        number: its number; None: the newest.

    Raises:
        ChannelError: it isn't on offer.
    """
    found = next((release for release in channel.index.releases if number in (None, release.number)), None)
    if found is None:
        on_offer = ", ".join(str(release.number) for release in channel.index.releases) or "nothing"
        what = "there is no release to take" if number is None else f"release {number} isn't on offer"
        raise ChannelError(f"{channel.name}: {what}; on offer: {on_offer}")
    return found


def _named(channel: Channel, taken: Release, number: int) -> Release:
    release = channel.log.releases.get(number)
    if release is None or (release.bundle == taken.bundle and taken in channel.index.releases):
        raise ChannelError(
            f"{channel.name}: --to {number}: no other release than {taken.number} bears that number; see `tfx-edge channel log`"
        )
    missing = missing_files(channel, release)
    if missing:
        raise ChannelError(
            f"{channel.name}: release {number} can't come back: its {missing[0]} was removed; raise keep_bundles in the policy"
        )
    return release


def _entries(offer: Offer, reason: str, who: str, now: datetime) -> list[LogEntry]:
    """For the log, in the order of the numbers."""
    reasons = dict.fromkeys(offer.again, reason) | dict.fromkeys(offer.moved, "stays before what came back")
    return [
        LogEntry(time=now, action="rollback" if release in offer.again else "renumber", who=who, key_id="", release=release, reason=why)
        for release, why in sorted(reasons.items(), key=lambda item: item[0].number)
    ]


def _cohort(cohort: Cohort) -> str:
    return "all devices" if cohort == Cohort() else f"the cohort {cohort.model_dump_json(exclude_defaults=True)}"

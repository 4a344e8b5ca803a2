"""Takes a release back. The older bundle comes again under a newer number, so that devices accept it; nothing old is replayed."""

from datetime import datetime

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.publish import Published, with_release
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import Cohort, Release, ReleaseIndex


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
        to: number of the one to go back to, which may have been taken back itself; None: the one before, for the same devices, that
            wasn't.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Returns:
        The new release, with the older bundle; it is offered to all devices of the cohort at once.

    Raises:
        ChannelError: there is no such release on offer, or none to go back to whose files are still there; the channel is busy or damaged.
    """
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name)
        taken = offered(channel, release)
        older = _named(channel, taken, to) if to is not None else before(channel, taken)
        if older is None:
            raise ChannelError(
                f"{name}: no release before {taken.number} is left for {_cohort(taken.cohort)}; publish another model, or withdraw this "
                "one with `tfx-edge channel stop`"
            )
        again = _again(channel, taken, older, now)
        entry = LogEntry(time=now, action="rollback", who=who or current_actor(), key_id="", release=again, reason=reason)
        index = with_release(_without(channel.index, taken), again)
        return Published(commit(channel, keyring, [entry], now=now, index=index), again, changed=True)


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
        release: its number; None: the newest.
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
        channel = open_channel(storage, name)
        taken = offered(channel, release)
        actor = who or current_actor()
        entries = [LogEntry(time=now, action="stop", who=actor, key_id="", release=taken, reason=reason)]
        older = before(channel, taken)
        index = _without(channel.index, taken)
        if older is None:
            commit(channel, keyring, entries, now=now, index=index)
            return None
        again = _again(channel, taken, older, now)
        entries.append(LogEntry(time=now, action="rollback", who=actor, key_id="", release=again, reason=reason))
        return Published(commit(channel, keyring, entries, now=now, index=with_release(index, again)), again, changed=True)


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
        raise ChannelError(f"{channel.name}: release {number or 'to take'} isn't on offer; on offer: {on_offer}")
    return found


def before(channel: Channel, taken: Release) -> Release | None:
    """The newest earlier release for the same devices that wasn't taken back and whose files are still there."""
    earlier = [release for number, release in sorted(channel.log.releases.items(), reverse=True) if number < taken.number]
    fitting = [
        release
        for release in earlier
        if release.bundle != taken.bundle and release.bundle not in channel.log.taken_back and not _missing(channel, release)
    ]
    for cohort in (taken.cohort, Cohort()):  # what was for all devices was for these as well
        for release in fitting:
            if release.cohort == cohort:
                return release
    return None


def _named(channel: Channel, taken: Release, number: int) -> Release:
    release = channel.log.releases.get(number)
    if release is None or release.bundle == taken.bundle:
        raise ChannelError(
            f"{channel.name}: --to {number}: no other release than {taken.number} bears that number; see `tfx-edge channel log`"
        )
    missing = _missing(channel, release)
    if missing:
        raise ChannelError(
            f"{channel.name}: release {number} can't come back: its {missing[0]} was removed; raise keep_bundles in the policy"
        )
    return release


def _missing(channel: Channel, release: Release) -> list[str]:
    known = channel.targets.signed.targets
    digests = {path: info.hashes.get("sha256") for path, info in known.items()}
    return [file.path for file in release.files if digests.get(release.target_path(file)) != file.digest]


def _again(channel: Channel, taken: Release, older: Release, now: datetime) -> Release:
    number = channel.log.last_number + 1
    changes = {"number": number, "cohort": taken.cohort, "share": 1.0, "published": now, "share_since": now, "rollback_of": taken.number}
    return older.model_copy(update=changes)


def _without(index: ReleaseIndex, taken: Release) -> ReleaseIndex:
    return index.model_copy(update={"releases": tuple(release for release in index.releases if release.number != taken.number)})


def _cohort(cohort: Cohort) -> str:
    return "all devices" if cohort == Cohort() else f"the cohort {cohort.model_dump_json(exclude_defaults=True)}"

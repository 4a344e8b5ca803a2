"""Publishes a bundle to a channel."""

from dataclasses import dataclass
from datetime import datetime

from tfx_edge.release.actor import current_actor
from tfx_edge.release.bundle import Bundle
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.provenance import Provenance
from tfx_edge.schemas.release import BundleFile, Cohort, Release, ReleaseIndex
from tfx_edge.schemas.versions import runtime_supports


@dataclass(frozen=True)
class Published:
    """What became of a bundle.

    Attributes:
        channel: as it is now.
        release: the bundle's.
        changed: False where the channel had it already.
    """

    channel: Channel
    release: Release
    changed: bool


def publish(
    storage: Storage,
    name: str,
    bundle: Bundle,
    keyring: Keyring,
    *,
    cohort: Cohort = Cohort(),
    provenance: Provenance | None = None,
    from_channel: str | None = None,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> Published:
    """Offers a bundle to the devices of a cohort, to the share of them that the policy's first step says.

    Where the newest release for the cohort is of this very bundle, nothing changes, whatever run made it.

    Args:
        storage: where channels lie.
        name: of the channel.
        bundle: what devices get.
        keyring: has the keys of targets, snapshot and timestamp.
        cohort: devices it is for.
        provenance: where it comes from, for the log.
        from_channel: the channel that it is promoted from, for the log; None: it is new.
        reason: for the log.
        who: publishes it, for the log; None: the user.
        now: the time; None: this moment.

    Raises:
        ChannelBusyError: another process is changing the channel.
        ChannelError: there is no such channel or it doesn't verify, the keyring lacks a key, or the bundle was taken back here before.
    """
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        newest = newest_release(channel.index, cohort)
        if newest is not None and newest.bundle == bundle.digest:
            return Published(channel, newest, changed=False)
        refuse_taken_back(channel, bundle.digest)
        release = Release(
            number=channel.log.last_number + 1,
            bundle=bundle.digest,
            files=_entries(channel, bundle),
            cohort=cohort,
            minimum_runtime=bundle.manifest.minimum_runtime,
            share=channel.policy.steps[0].share,
            published=now,
            share_since=now,
        )
        entry = LogEntry(
            time=now,
            action="publish" if from_channel is None else "promote",
            who=who or current_actor(),
            key_id="",
            release=release,
            provenance=provenance,
            from_channel=from_channel,
            reason=reason,
        )
        same = set(bundle.entries)
        files = {release.target_path(file): bundle.files[file.path] for file in release.files if file in same}
        channel = commit(channel, keyring, [entry], now=now, index=with_release(channel.index, release), files=files)
    return Published(channel, release, changed=True)


def _entries(channel: Channel, bundle: Bundle) -> tuple[BundleFile, ...]:
    """A bundle's files; of one that the channel has already, from another run, the files there, which other releases name as well."""
    folder = f"bundles/{bundle.digest}/"
    there = {path: info for path, info in sorted(channel.targets.signed.targets.items()) if path.startswith(folder)}
    if not there:
        return bundle.entries
    return tuple(
        BundleFile(path=path.removeprefix(folder), digest=info.hashes["sha256"], size_bytes=info.length) for path, info in there.items()
    )


def newest_release(index: ReleaseIndex, cohort: Cohort) -> Release | None:
    """The newest release that is on offer for just this cohort."""
    return next((release for release in index.releases if release.cohort == cohort), None)


def with_release(index: ReleaseIndex, release: Release) -> ReleaseIndex:
    """The index with a release more, or another state of one; without those that no device would choose any more."""
    others = [one for one in index.releases if one.number != release.number and not _covers(release, one)]
    releases = sorted([*others, release], key=lambda one: one.number, reverse=True)
    return ReleaseIndex(channel=index.channel, releases=tuple(releases))


def _covers(newer: Release, older: Release) -> bool:
    """Whether every device that the older one admits takes the newer one."""
    runs_where_older_does = newer.minimum_runtime is None or (
        older.minimum_runtime is not None and runtime_supports(newer.minimum_runtime, older.minimum_runtime)
    )
    return newer.number > older.number and newer.share == 1 and newer.cohort in (older.cohort, Cohort()) and runs_where_older_does


def refuse_taken_back(channel: Channel, bundle: str) -> None:
    """Refuses a bundle that was stopped or rolled back in a channel: what failed on devices never comes back by itself, as a rerun of
    its pipeline would bring it.

    Raises:
        ChannelError: it was.
    """
    entry = channel.log.taken_back.get(bundle)
    if entry is not None:
        what = "stopped" if entry.action == "stop" else "rolled back"
        raise ChannelError(
            f"{channel.name}: this model was {what} here on {entry.time:%Y-%m-%d} ({entry.reason or 'no reason given'}); publish another "
            "one, or go back to it with `tfx-edge channel rollback --to`"
        )

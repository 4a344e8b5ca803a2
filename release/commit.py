"""Changes a channel in one step: whoever reads it sees all of the change or nothing of it.

New files come first, under names that nothing refers to yet, then the metadata, each under its version's number. The last write replaces
timestamp.json: the change is there from then on, and before it the channel is as it was, whatever a crash leaves lying around.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from tuf.api.metadata import MetaFile, Snapshot, Targets, Timestamp

from tfx_edge.release.channel import Channel, metadata_path, require_files, target_info, target_path
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.signing import sign, signing_key_id
from tfx_edge.schemas.channel_log import LOG, ChannelLog, LogEntry
from tfx_edge.schemas.channel_policy import POLICY, ChannelPolicy
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import RELEASES, ReleaseIndex


def commit(
    channel: Channel,
    keyring: Keyring,
    entries: Sequence[LogEntry],
    *,
    now: datetime,
    index: ReleaseIndex | None = None,
    policy: ChannelPolicy | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Channel:
    """Changes a channel; the caller holds its lock.

    Args:
        channel: as it was opened under the lock.
        keyring: has the keys of targets, snapshot and timestamp.
        entries: go to the log, with the id of the key that signs the targets.
        now: signatures last from then on.
        index: what it offers from now on; None: as before.
        policy: its rules from now on; None: as before.
        files: content of new targets, by TUF's paths of them.

    Returns:
        The channel as it is now.

    Raises:
        ChannelError: the keyring lacks a key, a release has files that the channel hasn't, or something can't be written; nothing was
            changed.
    """
    policy = policy or channel.policy
    index = index or channel.index
    targets = Targets(channel.targets.signed.version + 1, expires=now + timedelta(days=policy.lifetimes.targets_days))
    snapshot = Snapshot(channel.snapshot.signed.version + 1, expires=now + timedelta(days=policy.lifetimes.snapshot_days))
    snapshot.meta = {"targets.json": MetaFile(targets.version)}
    timestamp = Timestamp(channel.timestamp.signed.version + 1, expires=now + timedelta(days=policy.lifetimes.timestamp_days))
    timestamp.snapshot_meta = MetaFile(snapshot.version)

    root = channel.root.signed
    key_id = signing_key_id("targets", root, keyring)
    log = ChannelLog(entries=(*channel.log.entries, *(entry.model_copy(update={"key_id": key_id}) for entry in entries)))
    contents = {RELEASES: index, POLICY: policy, LOG: log}
    written = {path: document.to_json().encode() for path, document in contents.items()} | dict(files or {})
    infos = {path: target_info(path, content) for path, content in written.items()}
    kept = _bundles_to_keep(index, policy, log)
    carried = {path: info for path, info in channel.targets.signed.targets.items() if path not in infos and _bundle_of(path) in kept}
    targets.targets = {**carried, **infos}
    require_files(index, targets, channel.name)

    # All that needs a key comes before the first write.
    signed_targets, signed_snapshot = sign(targets, root, keyring), sign(snapshot, root, keyring)
    signed_timestamp = sign(timestamp, root, keyring)
    for path, content in written.items():  # those too that are there: an attempt that was cut short may not have brought them to the disk
        channel.storage.write(target_path(channel.name, infos[path]), content)
    channel.storage.write(metadata_path(channel.name, "targets", targets.version), signed_targets.to_bytes())
    channel.storage.write(metadata_path(channel.name, "snapshot", snapshot.version), signed_snapshot.to_bytes())
    channel.storage.write(metadata_path(channel.name, "timestamp"), signed_timestamp.to_bytes())
    changed = Channel(channel.storage, channel.name, channel.root, signed_targets, signed_snapshot, signed_timestamp, index, policy, log)
    with suppress(ChannelError):  # the change is made; what can't be removed now goes with the next one
        sweep(channel, changed)
    return changed


def _bundles_to_keep(index: ReleaseIndex, policy: ChannelPolicy, log: ChannelLog) -> set[str]:
    """What is on offer, and the last others that a rollback could go back to."""
    offered = {release.bundle for release in index.releases}
    seen, past = set(offered), []
    for entry in reversed(log.entries):
        if entry.release is not None and entry.release.bundle not in seen:
            seen.add(entry.release.bundle)
            if entry.action != "expire":
                past.append(entry.release.bundle)
    return offered | set(past[: policy.keep_bundles])


def _bundle_of(path: str) -> str | None:
    return path.split("/")[1] if path.startswith("bundles/") else None


def sweep(before: Channel, after: Channel) -> None:
    """Removes what neither the channel nor the one before it refers to: a device may be in the middle of reading the old one."""
    name, storage = after.name, after.storage
    kept = {target_path(name, info) for channel in (before, after) for info in channel.targets.signed.targets.values()}
    for path in storage.list(f"{name}/targets"):
        if path not in kept:
            storage.remove(path)
    for role, signed in (("targets", before.targets.signed), ("snapshot", before.snapshot.signed)):
        for path in storage.list(f"{name}/metadata"):
            version, _, rest = path.rpartition("/")[2].partition(".")
            if rest == f"{role}.json" and version.isdigit() and int(version) < signed.version:
                storage.remove(path)

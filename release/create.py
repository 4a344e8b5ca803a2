"""Makes a channel."""

from datetime import datetime, timedelta

from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, Targets, Timestamp

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, channel_exists, metadata_path, target_info, target_path, utc_now
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.root import require_root_signed
from tfx_edge.release.signing import sign, signing_key_id
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LOG, ChannelLog, LogEntry
from tfx_edge.schemas.channel_policy import POLICY, ChannelPolicy
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import RELEASES, ReleaseIndex


def create_channel(
    storage: Storage,
    name: str,
    root: Metadata[Root],
    keyring: Keyring,
    policy: ChannelPolicy = ChannelPolicy(),
    *,
    who: str | None = None,
    now: datetime | None = None,
) -> Channel:
    """Makes a channel that offers nothing yet.

    Args:
        storage: where channels lie.
        name: of the channel.
        root: its first, signed; what devices must be shipped with.
        keyring: has the keys of targets, snapshot and timestamp.
        policy: its rules.
        who: makes it, for the log; None: the user.
        now: signatures last from then on; None: this moment.

    Raises:
        ChannelError: it is there already, the root isn't a first one, isn't signed by enough keys or has expired, or the keyring lacks one.
        ConfigError: the name can't be a channel's.
    """
    now = now or utc_now()
    index = ReleaseIndex(channel=name)
    refuse_circle(name, policy)
    require_root_signed(root)
    if root.signed.version != 1 or not root.signed.consistent_snapshot or root.signed.is_expired(now):
        raise ChannelError(
            f"{storage.describe(name)}: root {root.signed.version} that ends {root.signed.expires:%Y-%m-%d}; expected root 1, not expired, "
            "with consistent_snapshot, as `draft_root` makes it"
        )
    key_id = signing_key_id("targets", root.signed, keyring)
    entry = LogEntry(time=now, action="init", who=who or current_actor(), key_id=key_id, policy=policy)
    log = ChannelLog(entries=(entry,))
    documents = {RELEASES: index, POLICY: policy, LOG: log}
    contents = {path: document.to_json().encode() for path, document in documents.items()}
    lasts = policy.lifetimes
    targets = Targets(1, expires=now + timedelta(days=lasts.targets_days))
    targets.targets = {path: target_info(path, content) for path, content in contents.items()}
    snapshot = Snapshot(1, expires=now + timedelta(days=lasts.snapshot_days), meta={"targets.json": MetaFile(1)})
    timestamp = Timestamp(1, expires=now + timedelta(days=lasts.timestamp_days), snapshot_meta=MetaFile(1))
    signed_targets, signed_snapshot = sign(targets, root.signed, keyring), sign(snapshot, root.signed, keyring)
    signed_timestamp = sign(timestamp, root.signed, keyring)
    with storage.lock(f"{name}/lock"):
        if channel_exists(storage, name):
            raise ChannelError(f"{storage.describe(name)}: the channel is there already; publish to it, or name another one")
        for path, content in contents.items():
            storage.write(target_path(name, targets.targets[path]), content)
        storage.write(metadata_path(name, "root", 1), root.to_bytes())
        storage.write(metadata_path(name, "targets", 1), signed_targets.to_bytes())
        storage.write(metadata_path(name, "snapshot", 1), signed_snapshot.to_bytes())
        storage.write(metadata_path(name, "timestamp"), signed_timestamp.to_bytes())
    return Channel(storage, name, root, signed_targets, signed_snapshot, signed_timestamp, index, policy, log)


def refuse_circle(name: str, policy: ChannelPolicy) -> None:
    """Refuses a policy by which a channel promotes to itself.

    Raises:
        ChannelError: it does.
    """
    if policy.promote_to == name:
        raise ChannelError(f"{name}: promote_to names the channel itself; name the one after it, or none")

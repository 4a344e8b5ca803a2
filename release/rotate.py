"""Puts other keys in force. At no moment does a device see metadata that its root doesn't take.

Clients look for a newer root first, then read the rest with the keys that it names. So the new keys sign the current metadata in addition
to the old ones (clients pass over signatures by keys that they don't know), then the new root is written, and only the next change is
signed by the new keys alone. Clients drop what revoked keys signed, however high its version: that is how a channel recovers when a stolen
key was used to publish versions that no later one could exceed (TUF specification 5.3.11).
"""

from datetime import datetime
from typing import Any

from tuf.api.metadata import Metadata, Root

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, metadata_path, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.root import ROLES, require_root_signed
from tfx_edge.release.signing import add_signatures, require_signed, sign
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring


def apply_root(
    storage: Storage,
    name: str,
    draft: Metadata[Root],
    keyring: Keyring,
    *,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> Channel:
    """Puts a signed draft of the next root in force.

    Args:
        storage: where channels lie.
        name: of the channel.
        draft: as `draft_next_root` made it, signed by enough keys of itself and of the root in force. One that is in force already changes
            nothing, but for the log where an attempt was cut short before its last step.
        keyring: has the draft's keys of targets, snapshot and timestamp. The old ones may be lost.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Raises:
        ChannelBusyError: another process is changing the channel.
        ChannelError: the draft isn't the next root, has expired, or too few keys have signed it; the keyring lacks a key. Nothing was
            changed.
    """
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        if draft.signed == channel.root.signed:
            return _told(channel, keyring, reason, who, now)
        _require_next(channel, draft, now)
        current: list[Metadata[Any]] = [channel.targets, channel.snapshot, channel.timestamp]
        for metadata in current:
            sign(metadata.signed, draft.signed, keyring)  # the next change needs the keys: to lack one shows before anything is changed
        changed = _changed(channel.root.signed, draft.signed)
        signed_anew = [metadata for metadata in current if metadata.signed.type in changed]
        for metadata in signed_anew:
            add_signatures(metadata, keyring, draft.signed)
            require_signed(metadata, draft.signed)
            version = None if metadata is channel.timestamp else metadata.signed.version
            storage.write(metadata_path(name, metadata.signed.type, version), metadata.to_bytes())
        storage.write(metadata_path(name, "root", draft.signed.version), draft.to_bytes())
        return _told(open_channel(storage, name, keyring), keyring, reason or _summary(changed), who, now)


def _require_next(channel: Channel, draft: Metadata[Root], now: datetime) -> None:
    where, force = channel.storage.describe(channel.name), channel.root.signed.version
    if draft.signed.version != force + 1:
        raise ChannelError(f"{where}: the draft is root {draft.signed.version}, in force is {force}; draft it again")
    if draft.signed.is_expired(now):
        raise ChannelError(f"{where}: the draft ended {draft.signed.expires:%Y-%m-%d}, devices would refuse the channel; draft it again")
    require_root_signed(draft, channel.root)


def _told(channel: Channel, keyring: Keyring, reason: str, who: str | None, now: datetime) -> Channel:
    """The channel with a change of keys in its log for each root after the first; what was cut short behind the root lacks its own."""
    if sum(entry.action == "rotate-key" for entry in channel.log.entries) >= channel.root.signed.version - 1:
        return channel
    entry = LogEntry(time=now, action="rotate-key", who=who or current_actor(), key_id="", reason=reason)
    return commit(channel, keyring, [entry], now=now)


def _changed(before: Root, after: Root) -> list[str]:
    return [role for role in ROLES if _keys(before, role) != _keys(after, role)]


def _keys(root: Root, role: str) -> tuple[frozenset[str], int]:
    return frozenset(root.roles[role].keyids), root.roles[role].threshold


def _summary(changed: list[str]) -> str:
    return f"keys of {', '.join(changed)}" if changed else "the root's date"

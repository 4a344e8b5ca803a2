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
from tfx_edge.release.signing import add_signatures, require_signed
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
        draft: as `draft_next_root` made it, signed by enough keys of itself and of the root in force.
        keyring: has the draft's keys of targets, snapshot and timestamp. The old ones may be lost.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Raises:
        ChannelBusyError: another process is changing the channel.
        ChannelError: the draft isn't the next root, or too few keys have signed it; the keyring lacks a new key. Nothing was changed.
    """
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name)
        if draft.signed.version != channel.root.signed.version + 1:
            force = channel.root.signed.version
            raise ChannelError(f"{storage.describe(name)}: the draft is root {draft.signed.version}, in force is {force}; draft it again")
        require_root_signed(draft, channel.root)
        changed = [role for role in ROLES if _keys(draft.signed, role) != _keys(channel.root.signed, role)]
        current: list[Metadata[Any]] = [channel.targets, channel.snapshot, channel.timestamp]
        signed_anew = [metadata for metadata in current if metadata.signed.type in changed]
        for metadata in signed_anew:
            add_signatures(metadata, draft.signed, keyring)
        for metadata in current:
            require_signed(metadata, draft.signed)
        for metadata in signed_anew:
            version = None if metadata is channel.timestamp else metadata.signed.version
            storage.write(metadata_path(name, metadata.signed.type, version), metadata.to_bytes())
        storage.write(metadata_path(name, "root", draft.signed.version), draft.to_bytes())
        entry = LogEntry(time=now, action="rotate-key", who=who or current_actor(), key_id="", reason=reason or _summary(changed))
        return commit(open_channel(storage, name), keyring, [entry], now=now)


def _keys(root: Root, role: str) -> tuple[frozenset[str], int]:
    return frozenset(root.roles[role].keyids), root.roles[role].threshold


def _summary(changed: list[str]) -> str:
    return f"keys of {', '.join(changed)}" if changed else "the root's date"

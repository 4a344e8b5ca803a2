"""Which keys a role has after a change of keys."""

from collections.abc import Sequence

from tuf.api.metadata import Root

from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import key_of, public_key_of
from tfx_edge.release.root import ROLES, RoleKeys
from tfx_edge.schemas.channel_policy import PublicKey


def changed_keys(
    root: Root, role: str, *, add: Sequence[PublicKey] = (), revoke: Sequence[str] = (), threshold: int | None = None
) -> RoleKeys:
    """A role's keys with some more and some fewer.

    Args:
        root: in force.
        role: root, targets, snapshot or timestamp.
        add: new keys.
        revoke: TUF's ids of keys that go, or the beginnings of them.
        threshold: how many must sign from then on; None: as before, or all of the keys where that is fewer.

    Raises:
        ChannelError: no such role, no key of the role with such an id or several, or no key would be left.
    """
    if role not in ROLES:
        raise ChannelError(f"role {role!r}: expected one of {', '.join(ROLES)}")
    key_ids = list(root.roles[role].keyids)
    for wanted in revoke:
        found = [key_id for key_id in key_ids if wanted and key_id.startswith(wanted)]
        if len(found) != 1:
            known = ", ".join(key_id[:16] for key_id in key_ids)
            raise ChannelError(f"{role}: {len(found)} keys have an id that begins with {wanted!r}; its keys are {known}")
        key_ids.remove(found[0])
    keys = [public_key_of(root.keys[key_id]) for key_id in key_ids]
    keys += [key for key in add if key_of(key).keyid not in key_ids]
    if not keys:
        raise ChannelError(f"{role}: no key would be left; add one")
    return RoleKeys(tuple(keys), min(root.roles[role].threshold, len(keys)) if threshold is None else threshold)

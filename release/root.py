"""Root metadata: which keys a channel's roles have. Drafted, signed on as many machines as it takes, and only then put in force."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, Root

from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import key_of
from tfx_edge.release.signing import add_signatures, require_signed
from tfx_edge.schemas.channel_policy import LONGEST_DAYS, PublicKey
from tfx_edge.schemas.keyring import Keyring

ROLES = ("root", "targets", "snapshot", "timestamp")


@dataclass(frozen=True)
class RoleKeys:
    """The keys of a role.

    Attributes:
        keys: public ones.
        threshold: how many of them must sign.
    """

    keys: tuple[PublicKey, ...]
    threshold: int = 1


def draft_root(roles: Mapping[str, RoleKeys], *, now: datetime, days: float) -> Metadata[Root]:
    """The first root of a channel, not signed yet.

    Args:
        roles: keys of root, targets, snapshot and timestamp.
        now: the draft lasts from then on.
        days: for how long.

    Raises:
        ChannelError: a role is missing, a key is none, or a threshold can't be met.
    """
    if set(roles) != set(ROLES):
        raise ChannelError(f"roles are {', '.join(sorted(roles))}; expected keys for {', '.join(ROLES)}")
    _check_days(days)
    root = Root(version=1, expires=now + timedelta(days=days), consistent_snapshot=True)
    for role, keys in roles.items():
        _assign(root, role, keys)
    return Metadata(root)


def draft_next_root(root: Metadata[Root], roles: Mapping[str, RoleKeys], *, now: datetime, days: float) -> Metadata[Root]:
    """The root after another one, not signed yet: with other keys for some roles, or as it was with a new date.

    Raises:
        ChannelError: as `draft_root`.
    """
    _check_days(days)
    following = deepcopy(root.signed)
    following.version += 1
    following.expires = now + timedelta(days=days)
    for role, keys in roles.items():
        if role not in ROLES:
            raise ChannelError(f"role {role!r}: expected one of {', '.join(ROLES)}")
        _assign(following, role, keys)
    return Metadata(following)


def sign_root(draft: Metadata[Root], keyring: Keyring, previous: Metadata[Root] | None = None) -> int:
    """Adds the signatures that a keyring can give to a draft, as one of those who must sign it.

    Args:
        draft: changed in place.
        keyring: its `root` keys sign, whether they belong to the draft or to the root before it.
        previous: the root in force; None for a first one.

    Returns:
        How many keys signed.

    Raises:
        ChannelError: none did, for the keyring's references to such keys can't be used.
    """
    return add_signatures(draft, keyring, draft.signed, *([] if previous is None else [previous.signed]))


def require_root_signed(draft: Metadata[Root], previous: Metadata[Root] | None = None) -> None:
    """Checks that a draft can be put in force: enough of its own keys have signed, and enough of those of the root before it.

    Raises:
        ChannelError: they haven't.
    """
    require_signed(draft, draft.signed)
    if previous is not None:
        require_signed(draft, previous.signed)


def missing_signatures(draft: Metadata[Root], previous: Metadata[Root] | None = None) -> str:
    """What a draft lacks, for people; nothing where it can be put in force."""
    lacking = []
    for what, root in (("its own", draft), ("the root before it", previous)):
        if root is not None:
            result = root.signed.get_verification_result(Root.type, draft.signed_bytes, draft.signatures)
            if not result:
                more = result.threshold - len(result.signed)
                keys = ", ".join(sorted(key_id[:16] for key_id in result.unsigned))
                lacking.append(f"{more} more of the keys of {what} ({keys})")
    return " and ".join(lacking)


def read_root(content: bytes, what: str) -> Metadata[Root]:
    """Parses a root or a draft of one; signatures aren't looked at.

    Raises:
        ChannelError: it is none.
    """
    try:
        root: Metadata[Root] = Metadata.from_bytes(content)
    except RepositoryError as error:
        raise ChannelError(f"{what}: no TUF metadata: {' '.join(str(error).split())}") from None
    if root.signed.type != Root.type:
        raise ChannelError(f"{what}: it is metadata of {root.signed.type}; expected a root")
    return root


def _check_days(days: float) -> None:
    if not 0 < days <= LONGEST_DAYS:
        raise ChannelError(f"a root for {days} days; expected more than 0 and at most {LONGEST_DAYS}")


def _assign(root: Root, role: str, keys: RoleKeys) -> None:
    for key_id in list(root.roles[role].keyids):
        root.revoke_key(key_id, role)
    for key in keys.keys:
        root.add_key(key_of(key), role)
    known = len(root.roles[role].keyids)
    if not 1 <= keys.threshold <= known:
        raise ChannelError(f"{role}: {keys.threshold} of {known} keys must sign; expected 1 to {known}")
    root.roles[role].threshold = keys.threshold

"""Signs a role's metadata with the keys of a keyring, and checks that they are enough."""

from securesystemslib.signer import Signer
from tuf.api.metadata import Metadata, Root, T

from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import is_here, load_plugins, signers_for
from tfx_edge.schemas.keyring import Keyring


def sign(signed: T, root: Root, keyring: Keyring) -> Metadata[T]:
    """Signs a role's metadata with all of the role's keys that the keyring has.

    Args:
        signed: metadata of targets, snapshot or timestamp, or a root.
        root: names the role's keys and how many of them must sign.
        keyring: references to private keys.

    Raises:
        ChannelError: the keyring has too few of the keys; one can't be read.
    """
    metadata = Metadata(signed)
    for signer in _signers(signed.type, root, keyring, root.roles[signed.type].threshold):
        metadata.sign(signer, append=True)
    require_signed(metadata, root)
    return metadata


def add_signatures(metadata: Metadata[T], keyring: Keyring, *roots: Root) -> int:
    """Adds the signatures of all keys that a root names for the role and that the keyring has; signatures that are there stay.

    Returns:
        How many keys of the keyring signed.

    Raises:
        ChannelError: none did, for the keyring's references to such keys can't be used.
    """
    role = metadata.signed.type
    load_plugins(keyring)
    signers = signers_for(getattr(keyring, role), {key_id: root.keys[key_id] for root in roots for key_id in root.roles[role].keyids})
    for signer in signers:
        metadata.sign(signer, append=True)
    return len(signers)


def signing_key_id(role: str, root: Root, keyring: Keyring) -> str:
    """TUF's id of the keyring's first key for a role, as the log names who signed.

    Raises:
        ChannelError: the keyring has none of the role's keys.
    """
    signers = _signers(role, root, keyring)
    if not signers:
        ids = ", ".join(sorted(key_id[:16] for key_id in root.roles[role].keyids))
        raise ChannelError(f"{role}: the keyring has none of its keys; expected one of {ids}")
    return signers[0].public_key.keyid


def _signers(role: str, root: Root, keyring: Keyring, need: int = 1) -> list[Signer]:
    load_plugins(keyring)
    return signers_for(getattr(keyring, role), {key_id: root.keys[key_id] for key_id in root.roles[role].keyids}, need)


def can_sign(role: str, root: Root, keyring: Keyring) -> bool:
    """Whether the keyring refers to enough keys of a role, as far as can be told without a signature: a file may have been moved away."""
    keys = set(root.roles[role].keyids)
    here = [reference for reference in getattr(keyring, role) if reference.key_id in {None, *keys} and is_here(reference)]
    return len(here) >= root.roles[role].threshold


def require_signed(metadata: Metadata[T], root: Root) -> None:
    """Checks that enough of a root's keys have signed.

    Raises:
        ChannelError: they haven't; it names those that are missing.
    """
    role = metadata.signed.type
    result = root.get_verification_result(role, metadata.signed_bytes, metadata.signatures)
    if not result:
        unsigned = ", ".join(sorted(key_id[:16] for key_id in result.unsigned))
        raise ChannelError(
            f"{role}: signed by {len(result.signed)} of the {result.threshold} keys that it needs; "
            f"the keyring lacks the private key of {unsigned}"
        )

"""`tfx-edge channel key|rotate-key|sign|apply`: the keys of a channel's roles."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfx_edge.cli.channel.options import (
    CHANNELS,
    KEYRING,
    NAME,
    REASON,
    keyring_in,
    read_document,
    require_new,
    storage_of,
    write_new,
)
from tfx_edge.cli.options import JSON, tell
from tfx_edge.schemas import EdgeError

if TYPE_CHECKING:
    from tuf.api.metadata import Metadata, Root

    from tfx_edge.release.channel import Channel
    from tfx_edge.release.root import RoleKeys
    from tfx_edge.schemas import Keyring

_ROLE = click.Choice(["root", "targets", "snapshot", "timestamp"])


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@JSON
def key(file: Path, as_json: bool) -> None:
    """Make an Ed25519 key in FILE, a PEM that its owner alone can read, and print the public key.

    Example: tfx-edge channel key /media/usb/ann.pem
    """
    from tfx_edge.release.keys import generate_key, key_of

    public = generate_key(file)
    keyid = key_of(public).keyid
    tell(as_json, f"public key {public.public}\nkey id     {keyid}", file=str(file), public_key=public.public, key_id=keyid)


@click.command("rotate-key")
@CHANNELS
@NAME
@KEYRING
@click.option("--role", "roles", type=_ROLE, multiple=True, required=True, help="Whose keys change; repeatable.")
@click.option("--add", "added", multiple=True, help="Public key that the role gets, 64 hexadecimal digits or a PEM file; repeatable.")
@click.option("--revoke", "revoked", multiple=True, help="Id of a key that goes, or its beginning; repeatable.")
@click.option("--threshold", type=click.IntRange(1, 20), help="How many of the role's keys must sign from now on.")
@click.option("--draft", type=click.Path(path_type=Path), help="Write the next root here, to be signed elsewhere, and change nothing.")
@REASON
@JSON
def rotate_key(
    channels: str,
    name: str,
    keyring: Path,
    roles: tuple[str, ...],
    added: tuple[str, ...],
    revoked: tuple[str, ...],
    threshold: int | None,
    draft: Path | None,
    reason: str,
    as_json: bool,
) -> None:
    """Give roles other keys. Without --add and --revoke each role gets a new key beside the keyring in place of the one it has.

    The keyring must hold enough root keys; where they are kept apart, write a --draft, `sign` it with each, then `apply` it. What must
    sign is never fewer than before unless --threshold says so. References to replaced keys leave the keyring with success. Devices
    drop whatever revoked keys signed. A key that was stolen: rotate timestamp and snapshot together, so that versions that the thief
    ran up count no more.

    Example: tfx-edge channel rotate-key /srv/channels canary --role timestamp --keyring /secrets/keyring.json
    """
    from tfx_edge.release.channel import open_channel, utc_now
    from tfx_edge.release.root import draft_next_root, require_root_signed, sign_root
    from tfx_edge.release.rotate import apply_root
    from tfx_edge.release.signing import can_sign

    if len(set(roles)) > 1 and (added or revoked or threshold):
        raise EdgeError("--add, --revoke and --threshold are of one role; give one --role")
    storage = storage_of(channels)
    channel = open_channel(storage, name, keyring_in(keyring))
    if draft is not None:
        require_new(draft)
    elif not can_sign("root", channel.root.signed, _within_reach(keyring)):  # asked before a key is made
        need = channel.root.signed.roles["root"].threshold
        raise EdgeError(f"{keyring}: fewer than the {need} root keys that must sign; write a --draft, `sign` it where they are, `apply` it")
    keys = {role: _next_keys(channel, role, keyring, added, revoked, threshold) for role in dict.fromkeys(roles)}
    following = draft_next_root(channel.root, keys, now=utc_now(), days=channel.policy.lifetimes.root_days)
    version = following.signed.version
    held = _within_reach(keyring)
    sign_root(following, held, channel.root)
    if draft is not None:
        write_new(draft, following.to_bytes())
        line = f"{draft}: root {version} of {name}; sign it with the root keys, then apply it"
        tell(as_json, line, channel=name, root=version, roles=tuple(keys), draft=str(draft))
        return
    require_root_signed(following, channel.root)
    apply_root(storage, name, following, held, reason=reason)
    gone = _tidy(keyring, channel, following)
    line = f"{name}: root {version} is in force, with other keys for {', '.join(keys)}"
    tell(as_json, "\n".join([*_destroy(gone, name), line]), channel=name, root=version, roles=tuple(keys), replaced=gone)


def _next_keys(
    channel: "Channel", role: str, keyring: Path, added: tuple[str, ...], revoked: tuple[str, ...], threshold: int | None
) -> "RoleKeys":
    from tfx_edge.release.keyring_file import add_references, reference_to
    from tfx_edge.release.keys import generate_key, parse_public_key, public_key_in
    from tfx_edge.release.rekey import changed_keys

    root = channel.root.signed
    must_sign = root.roles[role].threshold
    if added or revoked or threshold:
        keys = changed_keys(root, role, add=tuple(map(parse_public_key, added)), revoke=revoked, threshold=threshold)
        if threshold is None and keys.threshold < must_sign:
            raise EdgeError(f"{role}: {len(keys.keys)} keys would be left, {must_sign} must sign; --add another, or lower the --threshold")
        return keys
    if len(root.roles[role].keyids) > 1:
        raise EdgeError(f"{role}: has {len(root.roles[role].keyids)} keys; name those that go with --revoke, those that come with --add")
    file = keyring.absolute().parent / f"{channel.name}-{role}-root{root.version + 1}.pem"
    new = public_key_in(file) if file.exists() else generate_key(file)  # one that an attempt left which was cut short
    add_references(keyring, {role: [reference_to(file.name, new)]})
    return changed_keys(root, role, add=(new,), revoke=root.roles[role].keyids)


def _within_reach(file: Path) -> "Keyring":
    """A keyring without the root keys that were taken off this machine: those sign elsewhere."""
    from tfx_edge.release.keys import is_here

    keyring = keyring_in(file)
    return keyring.model_copy(update={"root": tuple(filter(is_here, keyring.root))})


def _tidy(keyring: Path, channel: "Channel", following: "Metadata[Root]") -> dict[str, list[str]]:
    """Takes the references to keys that are no longer any role's out of the keyring, and returns them by role."""
    from tfx_edge.release.keyring_file import remove_references
    from tfx_edge.release.root import ROLES

    removed = {}
    for role in ROLES:
        gone = set(channel.root.signed.roles[role].keyids) - set(following.signed.roles[role].keyids)
        removed[role] = list(remove_references(keyring, role, gone))
    return {role: uris for role, uris in removed.items() if uris}


def _destroy(gone: dict[str, list[str]], name: str) -> list[str]:
    return [f"{uri}: no longer a {role} key of {name}; destroy it" for role, uris in gone.items() for uri in uris]


@click.command()
@click.argument("draft", type=click.Path(path_type=Path))
@KEYRING
@click.option("--previous", type=click.Path(path_type=Path), help="The root in force, N.root.json; needed for a draft of a later root.")
@JSON
def sign(draft: Path, keyring: Path, previous: Path | None, as_json: bool) -> None:
    """Add the signatures of the keyring's root keys to DRAFT, a root that draft-root or rotate-key wrote. Needs no channel.

    Example: tfx-edge channel sign root.json --keyring /media/usb/keyring.json --previous 1.root.json
    """
    from tfx_edge.release.root import missing_signatures, read_root, sign_root
    from tfx_edge.release.storage import LocalStorage

    root = read_root(read_document(draft), str(draft))
    before = None if previous is None else read_root(read_document(previous), str(previous))
    if before is None and root.signed.version > 1:
        raise EdgeError(f"{draft} is root {root.signed.version}; give --previous, the {root.signed.version - 1}.root.json that it follows")
    count = sign_root(root, keyring_in(keyring), before)
    if not count:
        raise EdgeError(f"{keyring}: has no root key that belongs to {draft}")
    LocalStorage(draft.absolute().parent).write(draft.name, root.to_bytes())
    missing = missing_signatures(root, before)
    line = f"{draft}: signed; {f'needs {missing}' if missing else 'has all signatures that it needs'}"
    tell(as_json, line, draft=str(draft), signatures=count, missing=missing or None)


@click.command()
@CHANNELS
@NAME
@click.argument("draft", type=click.Path(path_type=Path))
@KEYRING
@REASON
@JSON
def apply(channels: str, name: str, draft: Path, keyring: Path, reason: str, as_json: bool) -> None:
    """Put DRAFT, a later root that enough root keys have signed, in force. The keyring holds the new keys of the other roles.

    Example: tfx-edge channel apply /srv/channels canary root.json --keyring /secrets/keyring.json
    """
    from tfx_edge.release.channel import open_channel
    from tfx_edge.release.root import read_root
    from tfx_edge.release.rotate import apply_root

    storage = storage_of(channels)
    following = read_root(read_document(draft), str(draft))
    channel = open_channel(storage, name, keyring_in(keyring))
    apply_root(storage, name, following, keyring_in(keyring), reason=reason)
    gone = _tidy(keyring, channel, following)
    line = f"{name}: root {following.signed.version} is in force"
    tell(as_json, "\n".join([*_destroy(gone, name), line]), channel=name, root=following.signed.version, replaced=gone)

"""`tfx-edge channel init` and `draft-root`: makes channels."""

from pathlib import Path

import click

from tfx_edge.cli.channel.options import CHANNELS, KEYRING, NAME, NAMES, keyring_in, read_contract, read_document, storage_of, write_new
from tfx_edge.cli.options import JSON, tell
from tfx_edge.schemas import ChannelPolicy, EdgeError
from tfx_edge.schemas.release import CHANNELS as DEFAULT_NAMES

_POLICY = click.option("--policy", type=click.Path(path_type=Path), help="JSON of a ChannelPolicy; else the defaults.")


@click.command()
@CHANNELS
@NAMES
@KEYRING
@click.option("--root-keys", type=click.IntRange(1, 20), default=1, show_default=True, help="How many root keys are made.")
@click.option("--root-threshold", type=click.IntRange(1, 20), default=1, show_default=True, help="How many of them must sign.")
@_POLICY
@click.option("--root", type=click.Path(path_type=Path), help="A first root that was drafted and signed elsewhere; takes one name.")
@JSON
def init(
    channels: str,
    names: tuple[str, ...],
    keyring: Path,
    root_keys: int,
    root_threshold: int,
    policy: Path | None,
    root: Path | None,
    as_json: bool,
) -> None:
    """Make channels below CHANNELS: canary, beta and stable, or those that are named, each of which promotes to the next.

    New keys go beside the keyring, one file each. Take the root keys off this machine afterwards: only a change of keys needs them.
    Devices are shipped with the channel's 1.root.json.

    Example: tfx-edge channel init /srv/channels --keyring /secrets/keyring.json --root-keys 3 --root-threshold 2
    """
    from tfx_edge.release.channel import channel_exists

    wanted = names or DEFAULT_NAMES
    if len(set(wanted)) < len(wanted):
        raise EdgeError(f"{' '.join(wanted)}: a channel is named twice; name each once")
    storage = storage_of(channels)
    rules = None if policy is None else read_contract(policy, ChannelPolicy)
    there = [name for name in wanted if channel_exists(storage, name)]
    if there:
        raise EdgeError(f"{storage.describe(there[0])}: the channel is there already; publish to it, or name another one")
    if root is not None:
        if len(names) != 1:
            raise EdgeError("--root is the first root of one channel; name that one")
        if (root_keys, root_threshold) != (1, 1):
            raise EdgeError("--root has its keys; --root-keys and --root-threshold are for those that init makes")
        _with_root(channels, names[0], keyring, rules or ChannelPolicy(), root)
    else:
        if root_threshold > root_keys:
            raise EdgeError(f"--root-threshold {root_threshold}: there are {root_keys} root keys; give --root-keys at least as many")
        _with_new_keys(channels, wanted, keyring, rules, root_keys, root_threshold)
    roots = {name: storage.describe(f"{name}/metadata/1.root.json") for name in wanted}
    lines = (f"{name}: made; devices are shipped with {first}" for name, first in roots.items())
    tell(as_json, "\n".join(lines), channels=roots)


def _with_new_keys(channels: str, names: tuple[str, ...], keyring: Path, rules: ChannelPolicy | None, count: int, threshold: int) -> None:
    from tfx_edge.release.new_keys import create_with_new_keys

    for name, following in reversed(list(zip(names, (*names[1:], None), strict=True))):
        policy = rules or ChannelPolicy()
        if policy.promote_to is None:
            policy = policy.model_copy(update={"promote_to": following})
        create_with_new_keys(storage_of(channels), name, keyring, policy, root_keys=count, root_threshold=threshold)


def _with_root(channels: str, name: str, keyring: Path, rules: ChannelPolicy, root: Path) -> None:
    from tfx_edge.release.channel import trusted_root
    from tfx_edge.release.create import create_channel
    from tfx_edge.release.keyring_file import trust as trust_root
    from tfx_edge.release.root import read_root

    first = read_root(read_document(root), str(root))
    create_channel(storage_of(channels), name, first, keyring_in(keyring), rules)
    trust_root(keyring, name, trusted_root(first.signed))


@click.command()
@CHANNELS
@NAME
@KEYRING
@click.option("--root", type=click.Path(path_type=Path), help="The first root that devices are shipped with. [default: the channel's]")
@JSON
def trust(channels: str, name: str, keyring: Path, root: Path | None, as_json: bool) -> None:
    """Let a keyring that was written by hand, or on another machine, know the channel NAME by its first root.

    Nothing is signed for a channel whose first root the keyring doesn't know, and nothing is taken from it: whoever can write where
    channels lie could put another one there. `init` does this by itself. Compare the ids with those of who made the channel.

    Example: tfx-edge channel trust /srv/channels canary --keyring /secrets/keyring.json
    """
    from tfx_edge.release.channel import metadata_path, open_root, trusted_root
    from tfx_edge.release.keyring_file import trust as trust_root
    from tfx_edge.release.root import read_root, require_root_signed

    if root is None:
        storage = storage_of(channels)
        open_root(storage, name)
        first = read_root(storage.read(metadata_path(name, "root", 1)), storage.describe(metadata_path(name, "root", 1)))
    else:
        first = read_root(read_document(root), str(root))
        require_root_signed(first)
    known = trusted_root(first.signed)
    trust_root(keyring, name, known)
    tell(
        as_json, f"{name}: known by {known.threshold} of {', '.join(known.keys)}", channel=name, keys=known.keys, threshold=known.threshold
    )


@click.command("draft-root")
@click.argument("draft", type=click.Path(path_type=Path))
@click.option("--root", "root_keys", multiple=True, required=True, help="Public key, 64 hexadecimal digits or a PEM file; repeatable.")
@click.option("--threshold", type=click.IntRange(1, 20), default=1, show_default=True, help="How many of the root keys must sign.")
@click.option("--targets", "targets_keys", multiple=True, required=True, help="Public key of who publishes; repeatable.")
@click.option("--snapshot", "snapshot_keys", multiple=True, required=True, help="Public key; repeatable.")
@click.option("--timestamp", "timestamp_keys", multiple=True, required=True, help="Public key; repeatable.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), default=365, show_default=True, help="How long the root lasts.")
@JSON
def draft_root(
    draft: Path,
    root_keys: tuple[str, ...],
    threshold: int,
    targets_keys: tuple[str, ...],
    snapshot_keys: tuple[str, ...],
    timestamp_keys: tuple[str, ...],
    days: float,
    as_json: bool,
) -> None:
    """Write DRAFT, the first root of a channel whose keys were made elsewhere; `sign` it with each root key, then `init --root`.

    Example: tfx-edge channel draft-root root.json --root ann.pub --root bob.pub --threshold 2 --targets T --snapshot S --timestamp U
    """
    from tfx_edge.release.channel import utc_now
    from tfx_edge.release.keys import parse_public_key
    from tfx_edge.release.root import RoleKeys, draft_root

    given = {"root": root_keys, "targets": targets_keys, "snapshot": snapshot_keys, "timestamp": timestamp_keys}
    roles = {role: RoleKeys(tuple(map(parse_public_key, keys)), threshold if role == "root" else 1) for role, keys in given.items()}
    write_new(draft, draft_root(roles, now=utc_now(), days=days).to_bytes())
    line = f"{draft}: needs the signatures of {threshold} of {len(root_keys)} root keys; tfx-edge channel sign {draft} --keyring ..."
    tell(as_json, line, draft=str(draft), threshold=threshold, root_keys=len(root_keys))

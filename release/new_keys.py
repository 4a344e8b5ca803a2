"""Makes a channel together with keys for it."""

from datetime import datetime
from pathlib import Path

from tfx_edge.release.channel import Channel, channel_exists, trusted_root, utc_now
from tfx_edge.release.create import create_channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keyring_file import add_references, reference_to, trust
from tfx_edge.release.keys import generate_key, load_keyring, make_key_folder, public_key_in, remove_partial_keys
from tfx_edge.release.root import RoleKeys, draft_root, sign_root
from tfx_edge.release.storage import LocalStorage, Storage
from tfx_edge.schemas.channel_policy import ChannelPolicy, PublicKey
from tfx_edge.schemas.keyring import KeyReference
from tfx_edge.schemas.release import ReleaseIndex

FLEET = "fleet.pem"
"""One for all channels of a folder of keys: devices are enrolled once."""


def create_with_new_keys(
    storage: Storage,
    name: str,
    keyring: Path,
    policy: ChannelPolicy = ChannelPolicy(),
    *,
    root_keys: int = 1,
    root_threshold: int = 1,
    who: str | None = None,
    now: datetime | None = None,
) -> Channel:
    """Makes a channel, and Ed25519 keys for it, each in a file of its own that can be moved to where it belongs.

    Args:
        storage: where channels lie.
        name: of the channel.
        keyring: the keyring.json beside which the keys go; it is made, or gets them in addition to those of other channels. Keys that an
            attempt left which was cut short are used.
        policy: its rules; without fleet keys it gets the folder's.
        root_keys: how many root keys are made.
        root_threshold: how many of them must sign a change of keys.
        who: makes it, for the log; None: the user.
        now: as `create_channel`.

    Raises:
        ChannelBusyError: another process is making keys there.
        ChannelError: the channel is there already, or the keys would lie among the channels, where devices read.
        ConfigError: the name can't be a channel's.
    """
    ReleaseIndex(channel=name)
    folder = keyring.absolute().parent
    _refuse_among_channels(storage, folder)
    if channel_exists(storage, name):
        raise ChannelError(f"{storage.describe(name)}: the channel is there already; publish to it, or name another one")
    make_key_folder(folder)
    with LocalStorage(folder).lock(f".{keyring.name}.lock"):  # another channel's creation adds to the keyring, too
        keys = _make_keys(name, keyring, root_keys, root_threshold)
    if not policy.fleet_keys:
        policy = policy.model_copy(update={"fleet_keys": (public_key_in(folder / FLEET),)})
    now = now or utc_now()
    root = draft_root(keys, now=now, days=policy.lifetimes.root_days)
    sign_root(root, load_keyring(keyring))
    with LocalStorage(folder).lock(f".{keyring.name}.lock"):
        trust(keyring, name, trusted_root(root.signed))
    complete = load_keyring(keyring)
    return create_channel(storage, name, root, complete, policy, who=who, now=now)


def _make_keys(name: str, keyring: Path, root_keys: int, root_threshold: int) -> dict[str, RoleKeys]:
    """Makes the keys that aren't there, and names them in the keyring."""
    folder = keyring.absolute().parent
    keys: dict[str, RoleKeys] = {}
    references: dict[str, list[KeyReference]] = {"fleet": [reference_to(FLEET, _key(folder / FLEET))]}
    for role, count, threshold in (("root", root_keys, root_threshold), ("targets", 1, 1), ("snapshot", 1, 1), ("timestamp", 1, 1)):
        names = [f"{name}-{role}.pem"] if count == 1 else [f"{name}-{role}-{i + 1}.pem" for i in range(count)]
        keys[role] = RoleKeys(tuple(_key(folder / file) for file in names), threshold)
        references[role] = [reference_to(file, key) for file, key in zip(names, keys[role].keys, strict=True)]
    add_references(keyring, references)
    return keys


def _refuse_among_channels(storage: Storage, folder: Path) -> None:
    channels = Path(storage.describe("")).resolve()
    if folder.resolve() == channels or channels in folder.resolve().parents:
        raise ChannelError(f"{folder}: keys among the channels {channels}, which devices can read; give them a folder of their own")


def _key(file: Path) -> PublicKey:
    if not file.exists():
        return generate_key(file)
    remove_partial_keys(file)
    return public_key_in(file)

"""The channels and keys that a PromotionConfig names."""

from datetime import datetime
from pathlib import Path

from tfx_edge.components.edge_promoter.storage import FileioStorage
from tfx_edge.release.channel import channel_exists
from tfx_edge.release.keys import load_keyring
from tfx_edge.release.new_keys import create_with_new_keys
from tfx_edge.release.storage import LocalStorage, Storage
from tfx_edge.schemas import ChannelPolicy, Keyring, PromotionConfig


def storage_of(channels: str) -> Storage:
    """A folder of this machine, or what TFX's fileio reaches by a URL."""
    folder = channels.removeprefix("file://")  # a folder as well: with a real lock, and keys kept out of it
    return FileioStorage(channels) if "://" in folder else LocalStorage(Path(folder))


def keyring_of(config: PromotionConfig) -> Keyring:
    """The keyring that the config holds, or names.

    Raises:
        ChannelError: there is no such file.
        ConfigError: it isn't a keyring.
    """
    return config.keyring if isinstance(config.keyring, Keyring) else load_keyring(Path(config.keyring))


def create_missing(storage: Storage, config: PromotionConfig, now: datetime) -> None:
    """Makes the config's channels, with new keys, where the one that is published to isn't there yet.

    Raises:
        ChannelError: one can't be made.
    """
    if channel_exists(storage, config.channel):
        return
    names = config.created
    for name, following in reversed(list(zip(names, (*names[1:], None), strict=True))):
        if not channel_exists(storage, name):
            policy = config.policies.get(name, ChannelPolicy(promote_to=following))
            create_with_new_keys(storage, name, Path(str(config.keyring)), policy, now=now)

"""A model that was stopped in a channel is stopped in all that come after it."""

from collections.abc import Mapping

from tfx_edge.release.channel import Channel, open_channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.names import channels_in
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring


def stopped_before(channels: Mapping[str, Channel]) -> dict[str, dict[str, str]]:
    """For each channel the bundles that were stopped in one that promotes to it, directly or by others, and which channel that was.

    Args:
        channels: by name; a chain ends at a channel that isn't among them.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in channels}
    for name, channel in channels.items():
        bundles = _stopped(channel)
        following, passed = channel.policy.promote_to, {name}
        while following is not None and following in channels and following not in passed:
            passed.add(following)
            found[following].update(dict.fromkeys(bundles, name))
            following = channels[following].policy.promote_to
    return found


def refuse_stopped_before(storage: Storage, name: str, bundle: str, keyring: Keyring) -> None:
    """Refuses a bundle that was stopped in a channel before this one.

    Raises:
        ChannelError: it was.
    """
    channels = opened(storage, channels_in(storage), keyring)
    where = stopped_before(channels).get(name, {}).get(bundle)
    if where is not None:
        entry = _stopped(channels[where])[bundle]
        raise ChannelError(
            f"{name}: this model was stopped in {where}, a channel before it, on {entry.time:%Y-%m-%d} "
            f"({entry.reason or 'no reason given'}); promote another one"
        )


def opened(storage: Storage, names: tuple[str, ...] | list[str], keyring: Keyring | None = None) -> dict[str, Channel]:
    """Those of some channels that open, with the root that the keyring trusts where one is given."""
    found = {}
    for name in names:
        try:
            found[name] = open_channel(storage, name, keyring)
        except ChannelError:  # whoever works on it is told
            continue
    return found


def _stopped(channel: Channel) -> dict[str, LogEntry]:
    return {bundle: entry for bundle, entry in channel.log.taken_back.items() if entry.action == "stop"}

"""A model that was stopped in a channel is stopped in all that come after it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tfx_edge.release.channel import Channel, open_channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.names import channels_in
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring


@dataclass(frozen=True)
class Before:
    """The channels before each other.

    Attributes:
        channels: those that open, by name.
        damaged: those that don't, and why: what was stopped there can't be told.
    """

    channels: Mapping[str, Channel]
    damaged: Mapping[str, str]

    def stopped(self, name: str) -> dict[str, str]:
        """The bundles that were stopped in a channel that promotes to this one, directly or by others, and which channel that was."""
        found: dict[str, str] = {}
        for other, channel in self.channels.items():
            if other != name and name in self._after(other):
                found.update(dict.fromkeys(_stopped(channel), other))
        return found

    def require_readable(self, name: str) -> None:
        """Checks that no channel is damaged that may come before this one: any that this one doesn't lead to.

        Raises:
            ChannelError: one is.
        """
        after = self._after(name)
        for other, why in self.damaged.items():
            if other != name and other not in after:
                raise ChannelError(
                    f"{name}: what was stopped in {other}, which may come before it, can't be read, so nothing goes on: {why}"
                )

    def _after(self, name: str) -> set[str]:
        """The channels that a release of this one comes to."""
        found: set[str] = set()
        while name in self.channels:
            following = self.channels[name].policy.promote_to
            if following is None or following in found:
                break
            found.add(following)
            name = following
        return found


def channels_before(storage: Storage, keyring: Keyring, names: Iterable[str] = ()) -> Before:
    """Opens the channels of a folder that a keyring knows; what lies in others counts for nothing.

    Args:
        storage: where channels lie.
        keyring: says what their first roots are.
        names: of channels that must be among them, if the folder's own list should lack them.
    """
    channels, damaged = {}, {}
    for name in dict.fromkeys((*channels_in(storage), *names)):
        if name in keyring.roots:
            try:
                channels[name] = open_channel(storage, name, keyring)
            except ChannelError as error:
                damaged[name] = str(error)
    return Before(channels, damaged)


def refuse_stopped_before(storage: Storage, name: str, bundle: str, keyring: Keyring) -> None:
    """Refuses a bundle that was stopped in a channel before this one, or may have been.

    Raises:
        ChannelError: it was, or such a channel can't be read.
    """
    before = channels_before(storage, keyring)
    before.require_readable(name)
    where = before.stopped(name).get(bundle)
    if where is not None:
        entry = _stopped(before.channels[where])[bundle]
        raise ChannelError(
            f"{name}: this model was stopped in {where}, a channel before it, on {entry.time:%Y-%m-%d} "
            f"({entry.reason or 'no reason given'}); promote another one"
        )


def _stopped(channel: Channel) -> dict[str, LogEntry]:
    return {bundle: entry for bundle, entry in channel.log.taken_back.items() if entry.action == "stop"}

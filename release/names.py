"""The channels of a folder, in the order that a release goes through them."""

from tfx_edge.release.channel import channel_exists, open_channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.release import CHANNELS


def channels_in(storage: Storage) -> tuple[str, ...]:
    """Every channel there is; each stands before the ones it promotes to, otherwise canary, beta, stable, then by name.

    One that doesn't open is among them: who goes through them all must hear of it.
    """
    names = {name for name in storage.folders() if channel_exists(storage, name)}
    following: dict[str, str | None] = {}
    for name in names:
        try:
            following[name] = open_channel(storage, name).policy.promote_to
        except ChannelError:
            following[name] = None

    def rank(name: str) -> tuple[int, str]:
        return (CHANNELS.index(name) if name in CHANNELS else len(CHANNELS)), name

    ordered: list[str] = []
    rest = sorted(names, key=rank)
    while rest:  # the first that no other one left promotes to; in a circle the first of all
        fed = {following[name] for name in rest}
        ordered.append(next((name for name in rest if name not in fed), rest[0]))
        rest.remove(ordered[-1])
    return tuple(ordered)

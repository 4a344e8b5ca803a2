"""Changes the rules of a channel."""

from datetime import datetime

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, channel_exists, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.create import refuse_circle
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import key_of
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.channel_policy import ChannelPolicy
from tfx_edge.schemas.keyring import Keyring


def set_policy(
    storage: Storage,
    name: str,
    policy: ChannelPolicy,
    keyring: Keyring,
    *,
    reason: str = "",
    who: str | None = None,
    now: datetime | None = None,
) -> Channel:
    """Gives a channel other rules; releases keep the share that they have.

    Args:
        storage: where channels lie.
        name: of the channel.
        policy: from now on.
        keyring: has the keys of targets, snapshot and timestamp.
        reason: for the log.
        who: does it, for the log; None: the user.
        now: the time; None: this moment.

    Raises:
        ChannelError: a fleet key is no key; the keyring lacks a key; the channel is busy or damaged.
    """
    refuse_circle(name, policy)
    for key in policy.fleet_keys:
        key_of(key)
    now = now or utc_now()
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        if policy == channel.policy:
            return channel
        to = policy.promote_to
        if to not in (None, channel.policy.promote_to) and not channel_exists(storage, str(to)):
            raise ChannelError(f"{name}: promote_to {to}: {storage.describe(str(to))} is no channel; make it first")
        entry = LogEntry(time=now, action="policy", who=who or current_actor(), key_id="", policy=policy, reason=reason)
        return commit(channel, keyring, [entry], now=now, policy=policy)

"""Signs again what would end soon, so that devices don't take a quiet channel for a frozen one."""

from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta

from tuf.api.metadata import Metadata, T

from tfx_edge.release.channel import Channel, metadata_path
from tfx_edge.release.commit import sweep
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.signing import can_sign, sign
from tfx_edge.schemas.keyring import Keyring


def renew(channel: Channel, keyring: Keyring, *, now: datetime) -> tuple[Channel, tuple[str, ...]]:
    """Signs the timestamp again once a third of its time has gone, snapshot and targets once half of theirs has. The caller holds the lock.

    Args:
        channel: as it was opened under the lock.
        keyring: what it has no key for is left as it is: a machine without the targets' key keeps a channel fresh as well.
        now: the new signatures last from then on.

    Returns:
        The channel as it is now, and the roles that were signed.

    Raises:
        ChannelError: a key can't be used; what needs none but the others was signed all the same.
    """
    able = [role for role in ("targets", "snapshot", "timestamp") if can_sign(role, channel.root.signed, keyring)]
    try:
        return _renewed(channel, keyring, able, now)
    except ChannelError:
        for fewer in (able[-2:], able[-1:]):
            with suppress(ChannelError):
                _renewed(channel, keyring, [role for role in fewer if role != "targets"], now)
                break
        raise


def _renewed(channel: Channel, keyring: Keyring, able: Sequence[str], now: datetime) -> tuple[Channel, tuple[str, ...]]:
    """Renews what is due of the roles that the keyring is able to sign; a newer one needs those after it, which name it."""
    lasts, root = channel.policy.lifetimes, channel.root.signed
    targets, snapshot, timestamp = deepcopy(channel.targets), deepcopy(channel.snapshot), deepcopy(channel.timestamp)
    renewed: list[str] = []

    def due(metadata: Metadata[T], days: float, left: float) -> bool:
        return metadata.signed.expires - now < left * timedelta(days=days)

    def renewal(metadata: Metadata[T], days: float) -> Metadata[T]:
        metadata.signed.version += 1
        metadata.signed.expires = now + timedelta(days=days)
        renewed.append(metadata.signed.type)
        return sign(metadata.signed, root, keyring)

    if {"targets", "snapshot", "timestamp"} <= set(able) and due(targets, lasts.targets_days, 1 / 2):
        targets = renewal(targets, lasts.targets_days)
        snapshot.signed.meta["targets.json"].version = targets.signed.version
    if {"snapshot", "timestamp"} <= set(able) and (renewed or due(snapshot, lasts.snapshot_days, 1 / 2)):
        snapshot = renewal(snapshot, lasts.snapshot_days)
        timestamp.signed.snapshot_meta.version = snapshot.signed.version
    if "timestamp" in able and (renewed or due(timestamp, lasts.timestamp_days, 2 / 3)):
        timestamp = renewal(timestamp, lasts.timestamp_days)
    for metadata in (targets, snapshot):
        if metadata.signed.type in renewed:
            channel.storage.write(metadata_path(channel.name, metadata.signed.type, metadata.signed.version), metadata.to_bytes())
    if renewed:  # the timestamp last: it puts the others in force
        channel.storage.write(metadata_path(channel.name, "timestamp"), timestamp.to_bytes())
    fresh = replace(channel, targets=targets, snapshot=snapshot, timestamp=timestamp)
    if renewed:
        with suppress(ChannelError):  # this machine may sign the timestamp and change nothing else
            sweep(channel, fresh)  # a change's left-overs: where none follows, this removes what was withdrawn
    return fresh, tuple(renewed)

"""What channels do by themselves, made to run on a schedule: stop what fails, spread what does well, keep signatures fresh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.health import read_health
from tfx_edge.release.promote import hand_on
from tfx_edge.release.publish import newest_release, with_release
from tfx_edge.release.renew import renew
from tfx_edge.release.rollback import stop
from tfx_edge.release.rules import Judgement, judge
from tfx_edge.release.signing import can_sign
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import Release


@dataclass(frozen=True)
class TickAction:
    """What was done, or could not be.

    Attributes:
        channel: where.
        action: stop, grow, promote or renew; passed: the rules weren't applied, for lack of a key; failed: the channel couldn't be handled.
        text: one line.
        release: its number; None where the action concerns none.
    """

    channel: str
    action: str
    text: str
    release: int | None = None


def tick(
    storage: Storage, names: Sequence[str], keyring: Keyring, *, who: str | None = None, now: datetime | None = None
) -> tuple[TickAction, ...]:
    """Applies every channel's rules once. A second call right after it changes nothing.

    Stops come first, in all channels: what was stopped in one is stopped in those that it promotes to, and is never handed on.

    Args:
        storage: where the channels lie.
        names: of channels, from the first that a release comes to, to the last.
        keyring: without a channel's targets key its rules aren't applied, and its signatures are renewed all the same.
        who: does it, for the logs; None: the user.
        now: the time; None: this moment.

    Returns:
        What was done. A channel that is damaged, or that another process is changing, is told as failed, and the others still run.
    """
    now, who = now or utc_now(), who or current_actor()
    actions: list[TickAction] = []

    def each(step: Callable[[str], list[TickAction]], among: Sequence[str]) -> list[str]:
        """Takes a step in some channels; returns those where it went well."""
        well = []
        for name in among:
            try:
                actions.extend(step(name))
                well.append(name)
            except ChannelError as error:
                actions.append(TickAction(name, "failed", str(error)))
        return well

    sound = each(lambda name: _stop_failing(storage, name, keyring, who, now), names)
    stopped = _stopped(storage, sound)
    each(lambda name: _stop_others(storage, name, stopped.get(name, {}), keyring, who, now), sound)
    each(lambda name: _go_on(storage, name, stopped, keyring, who, now), sound)
    each(lambda name: _refresh(storage, name, keyring, now), sound)
    return tuple(actions)


def _judgements(channel: Channel, now: datetime) -> list[tuple[Release, Judgement]]:
    health = read_health(channel)
    return [
        (
            release,
            judge(
                release, channel.policy, health.counts(release.number), now, newest=release == newest_release(channel.index, release.cohort)
            ),
        )
        for release in channel.index.releases
    ]


def _stop_failing(storage: Storage, name: str, keyring: Keyring, who: str, now: datetime) -> list[TickAction]:
    channel = open_channel(storage, name)
    if not can_sign("targets", channel.root.signed, keyring):
        return [TickAction(name, "passed", "the keyring lacks the targets' key: the rules weren't applied")]
    return [
        _stopped_one(storage, name, release, judgement.text, keyring, who, now)
        for release, judgement in _judgements(channel, now)
        if judgement.action == "stop"
    ]


def _stopped_one(storage: Storage, name: str, release: Release, why: str, keyring: Keyring, who: str, now: datetime) -> TickAction:
    back = stop(storage, name, keyring, release=release.number, reason=why, who=who, now=now)
    then = "no release before it is left" if back is None else f"back to the model before it, as release {back.release.number}"
    return TickAction(name, "stop", f"{why}; {then}", release.number)


def _stopped(storage: Storage, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """For each channel the bundles that were stopped in a channel before it, and where."""
    channels = {name: open_channel(storage, name) for name in names}
    found: dict[str, dict[str, str]] = {}
    for name, channel in channels.items():
        bundles = {bundle for bundle, entry in channel.log.taken_back.items() if entry.action == "stop"}
        following, passed = channel.policy.promote_to, {name}
        while following is not None and following in channels and following not in passed:
            passed.add(following)
            found.setdefault(following, {}).update(dict.fromkeys(bundles, name))
            following = channels[following].policy.promote_to
    return found


def _stop_others(storage: Storage, name: str, stopped: dict[str, str], keyring: Keyring, who: str, now: datetime) -> list[TickAction]:
    channel = open_channel(storage, name)
    if not can_sign("targets", channel.root.signed, keyring):
        return []
    return [
        _stopped_one(storage, name, release, f"stopped in {stopped[release.bundle]}", keyring, who, now)
        for release in channel.index.releases
        if release.bundle in stopped
    ]


def _go_on(storage: Storage, name: str, stopped: dict[str, dict[str, str]], keyring: Keyring, who: str, now: datetime) -> list[TickAction]:
    channel = open_channel(storage, name)
    if not can_sign("targets", channel.root.signed, keyring):
        return []
    actions = []
    for release, judgement in _judgements(channel, now):
        if judgement.action == "grow" and judgement.share is not None:
            _grow(storage, name, release, judgement, keyring, who, now)
            actions.append(TickAction(name, "grow", judgement.text, release.number))
        elif judgement.action == "promote" and channel.policy.promote_to is not None:
            following = open_channel(storage, channel.policy.promote_to)
            known = {one.bundle for one in following.log.releases.values()}
            if release.bundle not in known | stopped.get(following.name, {}).keys() and can_sign("targets", following.root.signed, keyring):
                made = hand_on(channel, release, following.name, keyring, reason=judgement.text, who=who, now=now)
                actions.append(TickAction(name, "promote", f"{judgement.text}, as release {made.release.number} there", release.number))
    return actions


def _grow(storage: Storage, name: str, release: Release, judgement: Judgement, keyring: Keyring, who: str, now: datetime) -> None:
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name)
        if release not in channel.index.releases:
            return  # another process changed it meanwhile; the next tick sees
        grown = release.model_copy(update={"share": judgement.share, "share_since": now})
        entry = LogEntry(time=now, action="grow", who=who, key_id="", release=grown, reason=judgement.text)
        commit(channel, keyring, [entry], now=now, index=with_release(channel.index, grown))


def _refresh(storage: Storage, name: str, keyring: Keyring, now: datetime) -> list[TickAction]:
    with storage.lock(f"{name}/lock"):
        channel, renewed = renew(open_channel(storage, name), keyring, now=now)
        for path in read_health(channel).superseded:
            storage.remove(path)
    overdue = channel.expired(now)
    actions = [TickAction(name, "renew", ", ".join(renewed))] if renewed else []
    if overdue:
        text = f"{', '.join(overdue)}: expired, devices refuse the channel; the keyring lacks the keys to sign anew"
        actions.append(TickAction(name, "failed", text))
    return actions

"""What channels do by themselves, made to run on a schedule: stop what fails, spread what does well, keep signatures fresh."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import Channel, open_channel, utc_now
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.health import read_health
from tfx_edge.release.promote import hand_on, handed_on
from tfx_edge.release.publish import newest_release, with_release
from tfx_edge.release.renew import renew
from tfx_edge.release.rollback import stop_bundles
from tfx_edge.release.rules import Judgement, judge
from tfx_edge.release.signing import can_sign
from tfx_edge.release.stopped import Before, channels_before
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LogEntry
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import Release

ROOT_NOTICE = timedelta(days=30)
"""Before a root ends, which people alone can sign anew."""


@dataclass(frozen=True)
class TickAction:
    """What was done, or could not be.

    Attributes:
        channel: where.
        action: stop, grow, promote or renew; skipped: the rules weren't applied, for lack of a key; warning: something ends soon; failed:
            the channel couldn't be handled.
        text: one line.
        release: its number; None where the action concerns none.
        destination: promote: the channel that it is handed on to.
        new_release: promote: its number there; stop: that of the release that brings the model before it, None where there is none.
    """

    channel: str
    action: str
    text: str
    release: int | None = None
    destination: str | None = None
    new_release: int | None = None


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
        What was done. A channel that is damaged, or that another process is changing, is told as failed, and the others still run; but
        after a damaged one nothing spreads: what was stopped in it can't be told.
    """
    now, who = now or utc_now(), who or current_actor()
    actions: list[TickAction] = []

    def each(step: Callable[[str], Iterator[TickAction]], among: Sequence[str]) -> list[str]:
        """Takes a step in some channels; returns those where it went well."""
        well = []
        for name in among:
            try:
                for action in step(name):  # one by one: what was done before a failure is told
                    actions.append(action)
                well.append(name)
            except ChannelError as error:
                actions.append(TickAction(name, "failed", str(error)))
        return well

    sound = each(lambda name: _stop_failing(storage, name, keyring, who, now), names)
    before = channels_before(storage, keyring, sound)
    each(lambda name: _stop_others(storage, name, before.stopped(name), keyring, who, now), sound)
    each(lambda name: _go_on(storage, name, before, keyring, who, now), sound)
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


def _stop_failing(storage: Storage, name: str, keyring: Keyring, who: str, now: datetime) -> Iterator[TickAction]:
    channel = open_channel(storage, name, keyring)
    if not can_sign("targets", channel.root.signed, keyring):
        yield TickAction(name, "skipped", "the keyring lacks the targets' key: the rules weren't applied")
        return
    reasons = {release.bundle: judgement.text for release, judgement in _judgements(channel, now) if judgement.action == "stop"}
    yield from _stop(storage, name, reasons, keyring, who, now)


def _stop_others(
    storage: Storage, name: str, stopped: Mapping[str, str], keyring: Keyring, who: str, now: datetime
) -> Iterator[TickAction]:
    channel = open_channel(storage, name, keyring)
    if can_sign("targets", channel.root.signed, keyring):
        yield from _stop(storage, name, {bundle: f"stopped in {where}" for bundle, where in stopped.items()}, keyring, who, now)


def _stop(storage: Storage, name: str, reasons: Mapping[str, str], keyring: Keyring, who: str, now: datetime) -> Iterator[TickAction]:
    if not reasons:  # no lock is needed
        return
    for one in stop_bundles(storage, name, keyring, reasons, who=who, now=now):
        then = (
            "no release before it is left, devices keep what they have"
            if one.back is None
            else f"back to the model before it, as release {one.back.number}"
        )
        back = one.back.number if one.back else None
        yield TickAction(name, "stop", f"{reasons[one.release.bundle]}; {then}", one.release.number, new_release=back)


def _go_on(storage: Storage, name: str, before: Before, keyring: Keyring, who: str, now: datetime) -> Iterator[TickAction]:
    channel = open_channel(storage, name, keyring)
    if not can_sign("targets", channel.root.signed, keyring):
        return
    # Oldest first: the next channel gets them in the order in which they came here.
    for release, judgement in sorted(_judgements(channel, now), key=lambda one: one[0].number):
        if judgement.action in ("grow", "promote"):
            before.require_readable(name)
        if judgement.action == "grow" and judgement.share is not None:
            _grow(storage, name, release, judgement, keyring, who, now)
            yield TickAction(name, "grow", judgement.text, release.number)
        elif judgement.action == "promote" and channel.policy.promote_to is not None:
            following = open_channel(storage, channel.policy.promote_to, keyring)
            refused = {*before.stopped(following.name), *following.log.taken_back}
            done = release.bundle in refused or handed_on(release, following)
            if not done and can_sign("targets", following.root.signed, keyring):
                made = hand_on(channel, release, following.name, keyring, reason=judgement.text, who=who, now=now)
                if made.changed:
                    text = f"{judgement.text}, as release {made.release.number} there"
                    yield TickAction(name, "promote", text, release.number, following.name, made.release.number)


def _grow(storage: Storage, name: str, release: Release, judgement: Judgement, keyring: Keyring, who: str, now: datetime) -> None:
    with storage.lock(f"{name}/lock"):
        channel = open_channel(storage, name, keyring)
        if release not in channel.index.releases:
            return  # another process changed it meanwhile; the next tick sees
        grown = release.model_copy(update={"share": judgement.share, "share_since": now})
        entry = LogEntry(time=now, action="grow", who=who, key_id="", release=grown, reason=judgement.text)
        commit(channel, keyring, [entry], now=now, index=with_release(channel.index, grown))


def _refresh(storage: Storage, name: str, keyring: Keyring, now: datetime) -> Iterator[TickAction]:
    with storage.lock(f"{name}/lock"):
        channel, renewed = renew(open_channel(storage, name, keyring), keyring, now=now)
        for path in read_health(channel).superseded:
            storage.remove(path)
    if renewed:
        yield TickAction(name, "renew", ", ".join(renewed))
    overdue = [role for role in channel.expired(now) if role != "root"]
    if overdue:
        text = f"{', '.join(overdue)}: expired, devices refuse the channel; the keyring lacks the keys to sign anew"
        yield TickAction(name, "failed", text)
    elif not can_sign("timestamp", channel.root.signed, keyring):
        until = f"{channel.timestamp.signed.expires:%Y-%m-%d %H:%M}"
        yield TickAction(name, "failed", f"the keyring lacks the timestamp's key; devices refuse the channel from {until} on")
    ends, threshold = channel.root.signed.expires, channel.root.signed.roles["root"].threshold
    if ends - now < ROOT_NOTICE:
        state, when = ("failed", "has ended") if ends <= now else ("warning", "ends")
        cure = f"sign the next one: `tfx-edge channel rotate-key --role root --threshold {threshold}`"
        yield TickAction(name, state, f"the root {when} on {ends:%Y-%m-%d}, and the channel with it; {cure}")

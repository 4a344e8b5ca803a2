"""Tells others what became of a release: notifications and metrics, where they are set up."""

from collections.abc import Sequence

from tfx_edge.observability import metrics
from tfx_edge.observability.notifier import notify
from tfx_edge.observability.run import current_run
from tfx_edge.release.actor import current_actor
from tfx_edge.release.channel import utc_now
from tfx_edge.release.publish import Published
from tfx_edge.release.tick import TickAction
from tfx_edge.schemas.notify import EventKind, Notification
from tfx_edge.schemas.release import Release


def tell_promoted(published: Published, *, source: str | None = None, reason: str = "") -> None:
    """A release is on offer in a channel; nothing is told where it was already."""
    if published.changed:
        name, release = published.channel.name, published.release
        origin = f", promoted from {source}" if source else ""
        summary = f"{name}: release {release.number} is on offer{origin}, to {release.share:.0%} of its devices"
        _tell("promoted", name, release.number, summary, reason, release)


def tell_rolled_back(published: Published, *, reason: str = "") -> None:
    """A channel went back to an older model."""
    name, release = published.channel.name, published.release
    summary = f"{name}: release {release.number} takes back release {release.rollback_of}{_because(reason)}"
    _tell("rolled_back", name, release.number, summary, reason, release)


def tell_stopped(name: str, number: int | None, back: int | None, *, reason: str = "") -> None:
    """A release was stopped, and a channel went back to the model before it where there was one."""
    which = f"release {number}" if number is not None else "the newest release"
    then = f"; release {back} brings the model before it" if back is not None else "; there is none to go back to"
    _tell("stopped", name, number, f"{name}: {which} stopped{_because(reason)}{then}", reason)


def tell_ticked(actions: Sequence[TickAction]) -> None:
    """What channels did by themselves."""
    for action in actions:
        if action.action == "stop":
            tell_stopped(action.channel, action.release, action.new_release, reason=action.text.split(";")[0])
        elif action.action == "promote" and action.destination is not None:
            summary = f"{action.destination}: release {action.new_release} is on offer, promoted from {action.channel}"
            _tell("promoted", action.destination, action.new_release, summary, action.text)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _tell(event: EventKind, channel: str, number: int | None, summary: str, reason: str, release: Release | None = None) -> None:
    metrics.count("tfx_edge.channel.events", event=event, channel=channel)
    if number is not None and event != "stopped":
        metrics.measure("tfx_edge.channel.release", number, channel=channel)
    run = current_run()
    notify(
        Notification(
            event=event,
            time=utc_now(),
            summary=f"{run.pipeline}: {summary}" if run.pipeline else summary,
            pipeline=run.pipeline,
            run_id=run.run_id,
            component=run.component,
            who=current_actor(),
            model_digest=release.bundle if release else None,
            reasons=(reason,) if reason else (),
            channel=channel,
            release=number,
        )
    )

"""Carries a plan out, so that wherever it breaks off a schedule still runs, and the next apply finishes the work.

A replacement is made paused, which is all that may fail for long; then two small requests that can be repeated, resume the new one and
pause the old one, follow each other. In between both are active, which could start a run twice; the other order could start none, and
a night without a model that nobody notices is worse. So the pair stays clear of the moments at which either one fires.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from tfx_edge.kubeflow.schedule.connection import ServerError
from tfx_edge.kubeflow.schedule.cron import next_fires
from tfx_edge.kubeflow.schedule.declaration import Declaration
from tfx_edge.kubeflow.schedule.plan import Step
from tfx_edge.kubeflow.schedule.server import Recurring, Server

# The controller looks every 10 s or so: a start may come that much late, and requests with retries take their time.
_CLEAR = timedelta(seconds=30)
_FREQUENT = timedelta(minutes=5)  # what fires more often has no clear time worth waiting for


@dataclass(frozen=True)
class Clock:
    """The time, and how to wait; tests bring another."""

    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    sleep: Callable[[float], None] = time.sleep


def reconcile(
    server: Server, steps: Iterable[Step], zone: tzinfo, *, version: str | None = None, clock: Clock | None = None
) -> Iterator[str]:
    """Does each step, and yields a line about each as soon as it is done.

    Args:
        server: where.
        steps: from `plan`.
        zone: the controller's time zone.
        version: name of new pipeline versions; None: from the package's digest.
        clock: the time.

    Raises:
        ServerError: a request failed for good. Schedules done so far stay done; the one at hand still runs as before.
    """
    for step in steps:
        for line in _carry_out(server, step, zone, version, clock or Clock()):
            yield f"{step.name}: {line}"


def _carry_out(server: Server, step: Step, zone: tzinfo, version: str | None, clock: Clock) -> Iterator[str]:
    if step.action in ("create", "replace") and step.declared is not None:
        yield from _replace(server, step, step.declared, zone, version, clock)
    elif step.action == "resume" and step.keep is not None:
        server.enable(step.keep.id)
        yield "resumed"
    elif step.action == "pause" and step.keep is not None:
        server.disable(step.keep.id)
        yield "paused"
    for run in step.old:
        yield _remove(server, run, paused=not run.enabled or step.action in ("create", "replace"))


def _replace(server: Server, step: Step, declared: Declaration, zone: tzinfo, version: str | None, clock: Clock) -> Iterator[str]:
    pipeline = server.pipeline_id(declared.pipeline) or server.create_pipeline(declared.pipeline)
    uploaded = server.version_id(pipeline, declared.package_digest)
    if uploaded is None:
        name = version or f"sha256-{declared.package_digest[:12]}"
        uploaded = server.upload_version(declared, pipeline, name)
        yield f"uploaded version {name} of pipeline {declared.pipeline}"
    experiment = server.experiment_id(declared.schedule.experiment) or server.create_experiment(declared.schedule.experiment)
    active = [run for run in step.old if run.enabled]
    if active and declared.schedule.enabled:
        seconds = _until_clear([declared.six, *(run.cron for run in active)], zone, clock.now())
        if seconds:
            yield f"fires about now; waiting {seconds:.0f} s, so that no start is doubled or lost"
            clock.sleep(seconds)
    new = server.create_recurring(declared, pipeline, uploaded, experiment)
    _swap(server, active, new, resume=declared.schedule.enabled)
    yield "created" + ("" if declared.schedule.enabled else ", paused")


def _swap(server: Server, active: list[Recurring], new: str, *, resume: bool) -> None:
    """Resumes the new one and pauses what it replaces; where that failed, pauses the new one again, so that the old one runs alone.

    An error may also mean that the answer alone was lost: pausing the new one then would leave none, so the server is asked first.
    """
    try:
        if resume:
            server.enable(new)
        for run in active:
            server.disable(run.id)
    except ServerError as error:
        if not active:
            raise
        try:
            if not {run.id for run in server.recurring_runs() if run.enabled} & {run.id for run in active}:
                return
            server.disable(new)
        except ServerError:
            raise ServerError(f"{error}; old and new schedule may both be active: run apply again soon", error.status) from None
        raise ServerError(f"{error}; the old schedule runs on, apply again to finish", error.status) from None


def _remove(server: Server, run: Recurring, *, paused: bool) -> str:
    """Deletes a recurring run, or pauses it as long as a run of it is unfinished: KFP would kill that run."""
    if not paused:
        server.disable(run.id)
    if unfinished := server.unfinished_runs(run.id):
        return f"the old one is paused, and deleted by an apply after its run {unfinished[0]} has ended"
    server.delete(run.id)
    return "the old one is deleted"


def _until_clear(crons: Iterable[str | None], zone: tzinfo, now: datetime) -> float:
    """Seconds until no cron fires within `_CLEAR` before or after; 0 where it is clear now."""
    at = now
    for cron in filter(None, crons):
        first, second, _ = next_fires(cron, at - _CLEAR, zone)
        if second - first >= _FREQUENT and first <= at + _CLEAR:
            at = first + _CLEAR
    return (at - now).total_seconds()

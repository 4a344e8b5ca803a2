"""From what the file wants and what the server has to steps; writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tfx_edge.kubeflow.schedule.declaration import Declaration
from tfx_edge.kubeflow.schedule.server import Recurring, Server

Action = Literal["create", "replace", "pause", "resume", "delete", "unchanged", "leave"]


@dataclass(frozen=True)
class Step:
    """What happens to one schedule."""

    action: Action
    group: str
    name: str
    reason: str
    declared: Declaration | None = None
    keep: Recurring | None = None  # what stays
    old: tuple[Recurring, ...] = ()  # what goes, once it has no unfinished run
    upload: bool = False  # a new pipeline version


def plan(server: Server, group: str, declared: Sequence[Declaration], *, prune: bool = False) -> tuple[Step, ...]:
    """Compares; reads the server alone.

    A recurring run is taken for the declared one where its mark has the declaration's digest and its pipeline version still exists.
    A paused one beside an active older one is what a replacement left that broke off: it is made anew, because KFP, resuming it,
    would start at once what it "missed" since.
    """
    there = [run for run in server.recurring_runs() if run.group == group]
    steps = [_step(server, wanted, [run for run in there if run.name == wanted.name]) for wanted in declared]
    names = {wanted.name for wanted in declared}
    for name in sorted({run.name for run in there} - names):
        runs = tuple(run for run in there if run.name == name)
        reason = "not in the file any more"
        steps.append(
            Step("delete", group, name, reason, old=runs) if prune else Step("leave", group, name, f"{reason}; --prune deletes it")
        )
    return tuple(steps)


def _step(server: Server, wanted: Declaration, there: list[Recurring]) -> Step:
    def step(action: Action, reason: str, keep: Recurring | None = None) -> Step:
        old = tuple(run for run in there if keep is None or run.id != keep.id)
        upload = action in ("create", "replace") and _needs_upload(server, wanted)
        return Step(action, wanted.group, wanted.name, reason, wanted, keep, old, upload)

    current = [run for run in there if run.digest == wanted.digest]
    others_run = any(run.enabled for run in there if run.digest != wanted.digest)
    keep = next((run for run in reversed(current) if run.enabled or not others_run), None)
    if keep is None:
        reason = "an earlier replacement broke off" if current else "the declaration or its package changed"
        return step("replace", reason) if there else step("create", "not on the server")
    if not server.has_version(keep.pipeline_id, keep.version_id):
        return step("replace", "its pipeline version is gone")
    if keep.enabled and not wanted.schedule.enabled:
        return step("pause", "enabled: false in the file", keep)
    if not keep.enabled and wanted.schedule.enabled:
        return step("resume", "paused on the server, enabled in the file", keep)
    if len(there) > 1:
        return step("delete", "what it replaced is still there", keep)
    return step("unchanged", "as declared", keep)


def _needs_upload(server: Server, wanted: Declaration) -> bool:
    pipeline = server.pipeline_id(wanted.pipeline)
    return pipeline is None or server.version_id(pipeline, wanted.package_digest) is None

"""`tfx-edge schedule`: recurring runs on a Kubeflow Pipelines server."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from tfx_edge.cli.options import JSON, tell
from tfx_edge.schemas import EdgeError

if TYPE_CHECKING:
    from tfx_edge.kubeflow.schedule.plan import Step
    from tfx_edge.kubeflow.schedule.server import Recurring, Server


@dataclass(frozen=True)
class _Target:
    host: str
    token_file: Path | None
    ca_file: Path | None
    namespace: str | None

    def connect(self) -> "Server":
        from tfx_edge.kubeflow.schedule.connection import Credentials
        from tfx_edge.kubeflow.schedule.server import Server

        # Files and Kubernetes' secrets often end with a line break.
        token = os.environ.get("KFP_TOKEN", "").strip() or None
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="latin-1").strip()  # takes any byte; Credentials is the judge
            except OSError as error:
                raise EdgeError(f"--token-file {self.token_file}: can't be read ({error.strerror})") from None
        cookie = os.environ.get("KFP_COOKIE", "").strip() or None
        return Server(self.host, Credentials(token, cookie, self.ca_file), namespace=self.namespace)


def _connected(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--namespace", help="Your profile's namespace, on a multi-user Kubeflow."),
        click.option("--ca-file", type=click.Path(path_type=Path), help="Certificate of the authority that signed the server's."),
        click.option("--token-file", type=click.Path(path_type=Path), help="File with a bearer token; else the variable KFP_TOKEN."),
        click.option("--host", required=True, envvar="KF_PIPELINES_ENDPOINT", help="URL of the API. [env: KF_PIPELINES_ENDPOINT]"),
    ):
        command = option(command)
    return command


_FILE = click.option(
    "--file", type=click.Path(path_type=Path), default=Path("kubeflow/schedules.yaml"), show_default=True, help="Schedules."
)


@click.group()
def schedule() -> None:
    """Declare recurring runs in a file and keep a Kubeflow Pipelines server in step with it.

    KFP_TOKEN or --token-file gives a bearer token, KFP_COOKIE a session's cookie (authservice_session=...).

    Example: tfx-edge schedule apply --host http://localhost:8888 --dry-run
    """


@schedule.command()
@_connected
@_FILE
@JSON
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--prune", is_flag=True, help="Also delete this group's schedules that the file no longer has.")
@click.option("--version", help="Name of new pipeline versions, a git commit for example. [default: the package's digest]")
def apply(file: Path, as_json: bool, dry_run: bool, prune: bool, version: str | None, **target: Any) -> None:
    """Make the server have what the file says. A second apply changes nothing.

    Example: tfx-edge schedule apply --host http://localhost:8888 --file kubeflow/schedules.yaml
    """
    from tfx_edge.kubeflow.schedule.declaration import declare
    from tfx_edge.kubeflow.schedule.plan import plan
    from tfx_edge.kubeflow.schedule.reconcile import reconcile

    schedules, declared = declare(file)
    server = _Target(**target).connect()
    steps = plan(server, schedules.group, declared, prune=prune)
    zone = ZoneInfo(schedules.timezone)
    if not as_json:
        for step in steps:
            _print_step(step, zone)
    done = []
    if not dry_run:
        for line in reconcile(server, steps, zone, version=version):
            done.append(line)
            if not as_json:
                click.echo(f"  {line}")
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, "plan": [_as_json(step, zone) for step in steps], "done": done}, indent=2))


def _fires(six: str | None, zone: ZoneInfo, start: datetime | None = None, end: datetime | None = None) -> list[str]:
    """The next three times, inside the window; none with an interval, whose times the server alone knows."""
    from tfx_edge.kubeflow.schedule.cron import next_fires

    if six is None:
        return []
    now = datetime.now(timezone.utc)
    times = next_fires(six, max(now, start or now), zone)
    return [f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC" for at in times if end is None or at <= end]


def _declared_fires(step: "Step", zone: ZoneInfo) -> list[str]:
    if step.declared is None:
        return []
    window = step.declared.schedule.window
    return _fires(step.declared.six, zone, window.start, window.end)


def _zone(_: click.Context, __: click.Parameter, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise click.BadParameter(f"{name!r}: expected a name of the IANA time zone database, for example Europe/Berlin") from None


def _print_step(step: "Step", zone: ZoneInfo) -> None:
    from tfx_edge.kubeflow.schedule.cron import remarks

    click.echo(f"{step.action:<9} {step.name}: {step.reason}" + (", with a new pipeline version" if step.upload else ""))
    if step.declared is not None and step.declared.six is not None:
        click.echo(f"          cron {step.declared.six}, next {', '.join(_declared_fires(step, zone)) or 'never: the window is over'}")
        for remark in remarks(step.declared.six):
            click.echo(f"          note: {remark}")
    elif step.declared is not None:
        click.echo(f"          every {step.declared.schedule.interval}, counted from when it is created or the window starts")


def _as_json(step: "Step", zone: ZoneInfo) -> dict[str, Any]:
    six = step.declared.six if step.declared is not None else None
    return {
        "action": step.action,
        "group": step.group,
        "name": step.name,
        "reason": step.reason,
        "new_version": step.upload,
        "cron": six,
        "next": _declared_fires(step, zone),
    }


@schedule.command("list")
@_connected
@JSON
@click.option("--timezone", "zone", default="UTC", show_default=True, callback=_zone, help="The cluster's CRON_SCHEDULE_TIMEZONE.")
def list_(as_json: bool, zone: ZoneInfo, **target: Any) -> None:
    """Show the schedules on the server that this command made.

    Example: tfx-edge schedule list --host http://localhost:8888
    """
    runs = _Target(**target).connect().recurring_runs()
    if as_json:
        click.echo(json.dumps([_run_as_json(run, zone) for run in runs], indent=2))
        return
    for run in runs:
        when = run.cron or f"every {run.interval} s"
        state = "active" if run.enabled else "paused"
        click.echo(f"{run.group}/{run.name}  {state}  {when}  {', '.join(_run_fires(run, zone))}".rstrip())
    if not runs:
        click.echo("no schedules of ours")


def _run_fires(run: "Recurring", zone: ZoneInfo) -> list[str]:
    return _fires(run.cron, zone, run.start, run.end) if run.enabled else []


def _run_as_json(run: "Recurring", zone: ZoneInfo) -> dict[str, Any]:
    return {
        "name": run.name,
        "group": run.group,
        "state": "active" if run.enabled else "paused",
        "cron": run.cron,
        "interval_seconds": run.interval,
        "next": _run_fires(run, zone),
        "recurring_run_id": run.id,
        "pipeline_version_id": run.version_id,
    }


def _find(server: "Server", name: str) -> list["Recurring"]:
    """All recurring runs of a schedule, `name` or `group/name`; the newest last."""
    group, _, bare = name.rpartition("/")
    there = server.recurring_runs()
    found = [run for run in there if run.name == bare and (not group or run.group == group)]
    if not found:
        has = sorted({f"{run.group}/{run.name}" for run in there})
        raise EdgeError(f"schedule {name}: not on {server.host}; it has {', '.join(has) or 'none of ours'}")
    if len(groups := sorted({run.group for run in found})) > 1:
        raise EdgeError(f"schedule {name}: groups {', '.join(groups)} have one each; write {groups[0]}/{bare}")
    return found


def _newest(found: list["Recurring"]) -> "Recurring":
    """The one that counts: the newest that is active, or the newest where none is."""
    return next((run for run in reversed(found) if run.enabled), found[-1])


@schedule.command()
@_connected
@click.argument("name")
@JSON
def pause(name: str, as_json: bool, **target: Any) -> None:
    """Pause NAME. The next apply resumes it, unless the file says enabled: false.

    Example: tfx-edge schedule pause nightly --host http://localhost:8888
    """
    server = _Target(**target).connect()
    for run in _find(server, name):
        if run.enabled:
            server.disable(run.id)
    tell(as_json, f"{name}: paused", name=name, state="paused")


@schedule.command()
@_connected
@click.argument("name")
@JSON
def resume(name: str, as_json: bool, **target: Any) -> None:
    """Resume NAME. KFP starts at once what was missed: the last start, or with catch_up all of them.

    Example: tfx-edge schedule resume nightly --host http://localhost:8888
    """
    server = _Target(**target).connect()
    newest = _newest(_find(server, name))
    if not newest.enabled:
        server.enable(newest.id)
    tell(as_json, f"{name}: active", name=name, state="active")


@schedule.command()
@_connected
@click.argument("name")
@click.option("--kill-runs", is_flag=True, help="Delete it even if a run of it is unfinished, which KFP then kills.")
@JSON
def delete(name: str, kill_runs: bool, as_json: bool, **target: Any) -> None:
    """Delete NAME from the server.

    Example: tfx-edge schedule delete nightly --host http://localhost:8888
    """
    server = _Target(**target).connect()
    found = _find(server, name)
    if not kill_runs and (unfinished := [run for one in found for run in server.unfinished_runs(one.id)]):
        raise EdgeError(f"schedule {name}: run {unfinished[0]} is unfinished and KFP would kill it; pause it and wait, or give --kill-runs")
    for run in found:
        server.delete(run.id)
    tell(as_json, f"{name}: deleted", name=name, state="deleted")


@schedule.command()
@_connected
@click.argument("name")
@JSON
def run(name: str, as_json: bool, **target: Any) -> None:
    """Start one run of NAME now, with the version and parameters that it has on the server.

    Example: tfx-edge schedule run nightly --host http://localhost:8888
    """
    server = _Target(**target).connect()
    newest = _newest(_find(server, name))
    started = server.start_run(newest, f"{newest.name} {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} by hand")
    tell(as_json, f"{name}: started run {started}; in the UI under #/runs/details/{started}", name=name, run_id=started)

"""`tfx-edge run-package`: a compiled package without a cluster."""

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import click

from tfx_edge.cli import EXIT_ERROR
from tfx_edge.cli.options import JSON, pairs
from tfx_edge.schemas import EdgeError, TaskRecord
from tfx_edge.schemas.package_run import EngineName


@click.command("run-package")
@click.argument("package", type=click.Path(path_type=Path))
@click.option(
    "--root", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for artifacts, metadata, records and logs."
)
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="docker",
    show_default=True,
    help="Containers, or processes of this machine.",
)
@click.option(
    "--param",
    "parameters",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="An input of the pipeline; lists and objects as JSON.",
)
@click.option("--no-cache", is_flag=True, help="Run every task, also where an equal one succeeded before.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many tasks may run at once.")
@click.option("--user", metavar="UID[:GID]", help="docker: who a task runs as.  [default: who calls]")
@click.option("--volume", "volumes", multiple=True, metavar="HOST:CONTAINER[:ro]", help="docker: a further folder for every task.")
@JSON
def run_package(
    package: Path,
    root: Path,
    engine: EngineName,
    parameters: dict[str, str],
    no_cache: bool,
    jobs: int,
    user: str | None,
    volumes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run PACKAGE, as tfx-edge compile wrote it, task by task with the semantics of Kubeflow Pipelines.

    Exit status 0: every task succeeded or was skipped; 1: one failed, the run was stopped, or can't be made.

    Example: tfx-edge run-package package.yaml --root /tmp/run --engine host --param data=/data
    """
    if importlib.util.find_spec("kfp") is None:
        raise EdgeError("tfx-edge run-package: KFP's SDK is not installed; pip install 'tfx-edge[kubeflow]'")
    from tfx_edge.kubeflow.local_run.run import Options, run_package

    options = Options(root, engine, parameters, not no_cache, jobs, user, volumes)
    told = partial(click.echo, err=as_json)  # progress goes elsewhere where the record is what is asked for
    run, record = run_package(package, options, report=partial(_report, told), warn=lambda text: click.echo(f"warning: {text}", err=True))
    told(f"{run.state} in {run.seconds:.1f} s; record in {record}")
    if as_json:
        click.echo(run.to_json(), nl=False)
    if run.state != "SUCCEEDED":
        sys.exit(EXIT_ERROR)


def _report(told: Callable[[str], None], task: str, record: TaskRecord) -> None:
    seconds = f"{record.seconds:8.1f} s" if record.seconds is not None else f"{'':>10}"
    attempts = f"  {record.attempts} attempts" if record.attempts > 1 else ""
    told(f"  {task:<28} {record.state:<9} {seconds}{attempts}{f'  {record.reason}' if record.reason else ''}")
    if record.state == "FAILED" and record.log is not None:
        told(f"    log: {record.log}")
        if words := _last_words(Path(record.log)):
            told(f"    {words}")


def _last_words(log: Path) -> str:
    """Its last line that isn't empty; the entry point's says what is wrong."""
    with log.open("rb") as file:
        file.seek(-min(file.seek(0, 2), 2000), 2)
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

"""`tfx-edge report`: a run as one HTML file."""

import tempfile
from pathlib import Path

import click

from tfx_edge.cli.needs import require_tfx
from tfx_edge.cli.noise import noise_to
from tfx_edge.schemas import EdgeError, GateReport, JudgedModel, RunReport

_METADATA, _REPORT = "metadata.db", "report.json"


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The page. [default: report.html, or none with --json]"
)
@click.option("--pipeline", help="Name of the pipeline, where the metadata has several.")
@click.option("--run", "run_id", help="Id of the run. [default: the latest in which a gate judged a model]")
@click.option("--json", "as_json", is_flag=True, help="Print all that the page shows, a RunReport, as one JSON document.")
def report(source: Path, output: Path | None, pipeline: str | None, run_id: str | None, as_json: bool) -> None:
    """Write a run's report: verdict and reasons, metrics by slice, cost, disagreements, layers, plan, lineage and history in one HTML file.

    SOURCE is a pipeline's metadata (an SQLite file, or a folder with metadata.db), or the report.json of a gate, as `validate --report`
    writes it, of which less can be told.

    Example: tfx-edge report ~/.tfx-edge/digits -o report.html
    """
    found = _read(source, pipeline, run_id)
    if as_json:
        click.echo(found.to_json(), nl=False)
    if output is not None or not as_json:
        place = output or Path("report.html")
        write_page(found, place)
        if not as_json:
            click.echo(f"{place}: {'blessed' if found.models[0].report.blessed else 'not blessed'}, {place.stat().st_size / 1000:,.0f} kB")


def write_page(run: RunReport, path: Path) -> None:
    """Writes the page of a run.

    Raises:
        EdgeError: it can't be written, or what draws it isn't installed.
    """
    from tfx_edge.report.page import render_page

    html = render_page(run)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise EdgeError(f"{path}: can't be written ({error.strerror}); name another file") from error


def _read(source: Path, pipeline: str | None, run_id: str | None) -> RunReport:
    file = _file(source)
    try:
        start = file.open("rb").read(16)
    except OSError as error:
        raise EdgeError(f"{file}: can't be read ({error.strerror}); name a pipeline's metadata, or a gate's report.json") from error
    if start != b"SQLite format 3\0":
        if pipeline is not None or run_id is not None:
            raise EdgeError(f"{file}: no metadata database, so it has no runs; leave out --pipeline and --run")
        judged = GateReport.from_json(file.read_bytes())
        why = dict.fromkeys(("decisions", "manifest", "plan", "sparsity"), "this is a gate's report.json alone.")
        return RunReport(models=(JudgedModel(name=file.name, report=judged, missing=why),))
    require_tfx("report")
    with tempfile.NamedTemporaryFile(prefix="tfx-edge-", suffix=".log") as log, noise_to(Path(log.name)):
        from tfx_edge.pipelines.run_report import read_run

        return read_run(file, pipeline, run_id)


def _file(source: Path) -> Path:
    """The file that a folder stands for: its own, or that of its only subfolder which has one."""
    if not source.is_dir():
        return source
    own = [source / name for name in (_METADATA, _REPORT) if (source / name).is_file()]
    below = [place / _METADATA for place in sorted(source.iterdir()) if (place / _METADATA).is_file()]
    if own:
        return own[0]
    if len(below) == 1:
        return below[0]
    what = f"several: {', '.join(str(b.parent.name) for b in below)}" if below else f"no {_METADATA} and no {_REPORT} in it"
    raise EdgeError(f"{source}: {what}; name one that a pipeline or a gate wrote")

"""`tfx-edge validate`: the gate, without a pipeline."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from tfx_edge.cli import EXIT_GATE
from tfx_edge.cli.conditions import conditions, gate_config
from tfx_edge.cli.needs import require_tfx
from tfx_edge.cli.noise import noise_to
from tfx_edge.cli.options import example_files
from tfx_edge.cli.report import write_page
from tfx_edge.cli.verdict import show_report
from tfx_edge.schemas import EdgeError, GateConfig, RunReport


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--baseline", type=click.Path(path_type=Path), required=True, help="The float model, a SavedModel's folder.")
@click.option("--examples", multiple=True, required=True, help="TFRecord files of tf.Examples: a file, a folder or a pattern; repeatable.")
@conditions
@click.option("--report", type=click.Path(path_type=Path), help="Write the report.json here; `channel publish` asks for it.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page about it here, as `report` does of a run.")
@click.option("--json", "as_json", is_flag=True, help="Print the report, a GateReport, as one JSON document.")
def validate(
    model: Path, baseline: Path, examples: tuple[str, ...], report: Path | None, html: Path | None, as_json: bool, **options: Any
) -> None:
    """Judge MODEL, a .tflite file wherever it was made or a bundle's folder, against its float baseline, as EdgeValidator does.

    The examples hold the model's inputs by name, as the model takes them, and the label. Exit status 0: blessed; 2: not blessed; 1: error.

    Example: tfx-edge validate model.tflite --baseline saved_model --examples eval.tfrecord.gz --label digit --max-drop 0.01 --slice digit
    """
    require_tfx("validate")
    config = GateConfig(**gate_config(**options))
    if report is not None and report.exists():
        raise EdgeError(f"--report {report}: is there already; remove it or name another file")
    with tempfile.NamedTemporaryFile(prefix="tfx-edge-", suffix=".log") as log, noise_to(Path(log.name)):
        from tfx_edge.pipelines.standalone.judging import validate

        model_judged = validate(model, baseline, example_files(examples), config)
    judged = model_judged.report
    if html is not None:
        write_page(RunReport(models=(model_judged,)), html)
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(judged.to_json())
    if as_json:
        click.echo(judged.to_json(), nl=False)
    else:
        show_report(judged)
    if not judged.blessed:
        sys.exit(EXIT_GATE)

"""`tfx-edge selftest`: an edge model against its golden vectors."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from tfx_edge.cli import EXIT_GATE
from tfx_edge.schemas import EdgeError


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
def selftest(bundle: Path, as_json: bool) -> None:
    """Run the golden inputs of BUNDLE, a folder as TFLiteExporter writes it, and compare the outputs.

    Exit status 0: every output is within its tolerance; 2: one is not; 1: the test can't be made.

    Example: tfx-edge selftest pipeline/TFLiteExporter/model/7
    """
    from tfx_edge.device.selftest import SelfTestError, selftest_bundle

    try:
        compared = selftest_bundle(bundle)
    except SelfTestError as error:
        raise EdgeError(str(error)) from None
    passed = all(output.passed for output in compared)
    if as_json:
        click.echo(
            json.dumps({"passed": passed, "outputs": [{**asdict(output), "passed": output.passed} for output in compared]}, indent=2)
        )
    else:
        for output in compared:
            click.echo(str(output))
    if not passed:
        sys.exit(EXIT_GATE)

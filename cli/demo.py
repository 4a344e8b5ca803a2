"""`tfx-edge demo`: the main job on the digits, end to end."""

import importlib.util
import logging
import re
import sys
import time
from pathlib import Path
from typing import TextIO

import click

from tfx_edge.cli import EXIT_GATE
from tfx_edge.cli.noise import noise_to
from tfx_edge.cli.report import write_page
from tfx_edge.cli.simulated_device import SimulatedDevice
from tfx_edge.cli.summary import read_summary, render
from tfx_edge.schemas import EdgeError

PIPELINE = "digits"


@click.command()
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="TFX_EDGE_HOME",
    default=Path("~/.tfx-edge"),
    show_default=True,
    help="Folder for metadata, artifacts, the release channels and a simulated device. [env: TFX_EDGE_HOME]",
)
def demo(home: Path) -> None:
    """Run the digits pipeline: raw records to a blessed int8 model on a signed channel; then a simulated device updates itself from it.

    A second run reuses the results of unchanged components.

    Example: tfx-edge demo --home /tmp/edge
    """
    if importlib.util.find_spec("tfx") is None:
        raise EdgeError("tfx-edge demo: TFX is not installed; pip install 'tfx-edge[tfx]'")
    root = home.expanduser().resolve() / PIPELINE
    log = root / "run.log"
    _check_home(root, log)
    click.echo(f"Running the {PIPELINE} pipeline below {root}; details in {log}")
    start = time.monotonic()
    with noise_to(log) as terminal:
        _run(root, terminal)
        summary = read_summary(root / "metadata.db", PIPELINE)
        device = _update_device(root, summary.pushed) if summary.pushed is not None else None
        page = _write_report(root)
    render(summary, seconds=time.monotonic() - start)
    click.echo(f"report    {page}")
    if device is None:
        sys.exit(EXIT_GATE)
    for line in device:
        click.echo(f"device    {line}")


def _check_home(root: Path, log: Path) -> None:
    """Makes the folder, and looks at what is there already."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        log.open("ab").close()
    except OSError as error:
        raise EdgeError(f"--home {root.parent}: {log} can't be written ({error.strerror}); give another folder") from error
    database = root / "metadata.db"
    if database.exists() and database.stat().st_size and database.open("rb").read(16) != b"SQLite format 3\0":
        raise EdgeError(f"{database} isn't a metadata database; remove {root} and run again")


def _update_device(root: Path, channel: Path) -> list[str]:
    """Keeps the channels' signatures fresh, as a schedule would, and lets a device take what canary offers and answer with it."""
    from tfx_edge.pipelines.digits.data import read_transformed
    from tfx_edge.pipelines.runs import latest_outputs
    from tfx_edge.release.keys import load_keyring
    from tfx_edge.release.names import channels_in
    from tfx_edge.release.storage import LocalStorage
    from tfx_edge.release.tick import tick

    storage = LocalStorage(channel.parent)
    tick(storage, channels_in(storage), load_keyring(root / "keys" / "keyring.json"))
    device = SimulatedDevice.make(root / "device", channel)
    said = device.run("update")
    images, labels = read_transformed(latest_outputs(root / "metadata.db", PIPELINE)["Transform", "transformed_examples"].uri, 10)
    return [said, f"sees      {' '.join(map(str, labels))}", f"answers   {' '.join(map(str, device.classify('image', images)))}"]


def _write_report(root: Path) -> Path:
    from tfx_edge.pipelines.run_report import read_run

    page = root / "report.html"
    write_page(read_run(root / "metadata.db", PIPELINE), page)
    return page


def _run(root: Path, terminal: TextIO) -> None:
    from absl import logging as absl_logging
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    from tfx_edge.pipelines.digits.data import write_examples
    from tfx_edge.pipelines.digits.pipeline import create_pipeline

    data = root / "data"
    write_examples(data)
    absl_logging.set_verbosity(absl_logging.INFO)
    logging.getLogger("absl").addHandler(_Progress(terminal))
    LocalDagRunner().run(create_pipeline(str(root), str(data), name=PIPELINE))


class _Progress(logging.Handler):
    """One line for each component that has run."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__(logging.INFO)
        self.terminal = terminal
        self.started: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        match = re.fullmatch(r"Component (\S+) is (running|finished)\.", record.getMessage())
        if match is None:
            return
        component, state = match.groups()
        if state == "running":
            self.started[component] = time.monotonic()
        else:
            seconds = time.monotonic() - self.started.get(component, time.monotonic())
            print(f"  {component:<18} {seconds:6.1f} s", file=self.terminal, flush=True)

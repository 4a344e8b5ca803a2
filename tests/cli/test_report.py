"""`tfx-edge report`: from metadata or a gate's report to a page, or JSON."""

import subprocess
import sys
from pathlib import Path

import pytest
import run_reports
from metadata_runs import MetadataRuns

from tfx_edge.schemas import RunReport


def run(folder: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [Path(sys.executable).with_name("tfx-edge"), "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a demo leaves it: a folder with a folder with metadata."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "digits").mkdir()
    MetadataRuns(folder / "digits").begin("the run").judged()
    return folder


def test_a_folder_with_metadata_gives_a_page_and_one_line(home: Path, tmp_path: Path) -> None:
    made = run(tmp_path, home, "-o", "pages/report.html")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("pages/report.html: blessed, ") and len(made.stdout.splitlines()) == 1
    assert "the run" in (tmp_path / "pages" / "report.html").read_text()


def test_json_has_all_that_the_page_shows_and_writes_no_page_unless_asked(home: Path, tmp_path: Path) -> None:
    told = run(tmp_path, home / "digits" / "metadata.db", "--run", "the run", "--json")
    assert (told.returncode, told.stderr) == (0, "")
    found = RunReport.from_json(told.stdout)
    assert found.run_id == "the run" and found.models[0].report == run_reports.gate_report()
    assert list(tmp_path.iterdir()) == []


def test_a_gates_report_alone_gives_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(run_reports.gate_report(reasons=("it is too large",)).to_json())
    made = run(tmp_path, "report.json")
    assert made.returncode == 0 and made.stdout.startswith("report.html: not blessed, ")
    page = (tmp_path / "report.html").read_text()
    assert "it is too large" in page and "this is a gate&#39;s report.json alone" in page


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nothing.db",), "nothing.db: can't be read (No such file or directory); name a pipeline's metadata, or a gate's report.json"),
        ((".",), ".: no metadata.db and no report.json in it; name one that a pipeline or a gate wrote"),
        (("text",), "GateReport: Invalid JSON: expected ident at line 1 column 2; expected the JSON of a GateReport"),
        (("text", "--run", "x"), "text: no metadata database, so it has no runs; leave out --pipeline and --run"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    (tmp_path / "text").write_text("no report")
    refused = run(tmp_path, *arguments)
    assert (refused.returncode, refused.stderr) == (1, f"error: {error}\n")
    assert not (tmp_path / "report.html").exists()

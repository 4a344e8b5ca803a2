"""The set-up script's choices and its words when it can't go on. It never gets as far as to install anything here."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
LOCKS = ("1.16", "1.21")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without an environment: what the script reads, and an empty home."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for name in ("setup.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "home").mkdir()
    return tmp_path


def set_up(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(checkout / "home"), **variables}
    return subprocess.run([checkout / "requirements" / "setup.sh"], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"TFX_EDGE_LINE": "2.0"}, r"TFX_EDGE_LINE is 2\.0; give it 1\.16 or 1\.21"),
        ({"TFX_EDGE_PYTHON": "/no/such/python"}, r"no Python [\d. ]+ for TFX 1\.\d\d: looked at /no/such/python; install one"),
        ({"CXX": "no-such-compiler"}, r"no compiler no-such-compiler, which pyfarmhash needs; install one .*g\+\+"),
    ],
)
def test_what_is_missing_is_said_in_one_line_and_no_environment_is_left(checkout: Path, variables: dict[str, str], line: str) -> None:
    run = set_up(checkout, **{"TFX_EDGE_PYTHON": sys.executable, **variables})
    assert run.returncode == 1
    assert re.fullmatch(f"set-up: {line}.*\n", run.stderr), run.stderr
    assert not (checkout / ".venv").exists()


def test_an_environment_that_is_up_to_date_is_left_alone() -> None:
    if not (ROOT / ".venv" / "up-to-date").exists():
        pytest.skip("this environment was not made by the set-up script")
    before = (ROOT / ".venv" / "up-to-date").stat().st_mtime_ns
    run = subprocess.run([ROOT / "requirements" / "setup.sh"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert (ROOT / ".venv" / "up-to-date").stat().st_mtime_ns == before


@pytest.mark.parametrize("line", LOCKS)
def test_a_lock_pins_every_package_with_hashes(line: str) -> None:
    text = (ROOT / "requirements" / f"tfx-{line}.txt").read_text()
    entries = [entry for entry in re.split(r"\n(?=[a-z0-9])", text) if not entry.startswith("#")]
    assert len(entries) > 150
    for entry in entries:
        assert re.match(r"[\w.\-\[\]]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("line", LOCKS)
def test_a_lock_satisfies_the_base_and_the_tfx_extra(line: str) -> None:
    pinned = {}
    for entry in re.finditer(r"^([a-z0-9][\w.\-]*)==([^\s;]+)", (ROOT / "requirements" / f"tfx-{line}.txt").read_text(), re.MULTILINE):
        pinned.setdefault(entry[1], []).append(entry[2])
    for requirement in declared_requirements():
        versions = pinned.get(requirement.name.lower().replace("_", "-"))
        assert versions, f"{requirement.name} is not in the lock"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def declared_requirements() -> list[Requirement]:
    """Base dependencies and the tfx extra out of pyproject.toml; TOML's strings are all that is needed of it."""
    text = (ROOT / "pyproject.toml").read_text()
    lists = [re.search(rf"^{key} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)[1] for key in ("dependencies", "tfx")]
    return [Requirement(name) for part in lists for name in re.findall(r'^\s*"([^"]+)"', part, re.MULTILINE)]

"""What `make test` says where it finds no browser."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "browser.sh"


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ({"chromium": "", "chromedriver": ""}, ""),
        ({"chromium": ""}, "no chromium and chromedriver here, and no apt-get to install them"),
        ({"apt-get": "exit 1", "id": "echo 1000"}, "no chromium and chromedriver here (apt-get install chromium chromium-driver)"),
        ({"apt-get": "exit 1", "id": "echo 0"}, "apt-get update failed, see "),
        ({"apt-get": "[ $1 = update ]", "id": "echo 0"}, "apt-get couldn't install chromium, see "),
        ({"apt-get": "echo $@ >>calls", "id": "echo 0"}, ""),
    ],
    ids=["there already", "no apt-get", "not root", "no mirror", "no package", "installed"],
)
def test_a_browser_is_installed_where_it_can_be_and_else_one_line_says_what_is_skipped(
    tmp_path: Path, commands: dict[str, str], said: str
) -> None:
    for name, does in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    variables = {**os.environ, "PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    run = subprocess.run(["/bin/bash", SCRIPT], env=variables, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, "without a browser all other tests still run"
    assert run.stderr.startswith(f"browser: {said}" if said else "") and len(run.stderr.splitlines()) == bool(said)
    if said:
        assert run.stderr.endswith("; the tests of the report in a browser are skipped\n")
    elif "apt-get" in commands:
        assert "install -y -qq --no-install-recommends chromium chromium-driver" in (tmp_path / "calls").read_text()

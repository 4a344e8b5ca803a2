"""The set-up script's choices and its words when it can't go on. It never gets as far as to install anything here."""

import hashlib
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
SIDES = ("targets", "device")


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


def digest(checkout: Path, made_from: list[Path]) -> str:
    return hashlib.sha256(f"{checkout}\n".encode() + b"".join(path.read_bytes() for path in made_from)).hexdigest() + "\n"


def stamp_sides(checkout: Path) -> None:
    """As if the environments of the tools for targets and of a device had been made."""
    for side in SIDES:
        made_from = [checkout / "requirements" / name for name in ("setup.sh", f"{side}.txt")]
        (checkout / ".venv" / side).mkdir(parents=True, exist_ok=True)
        (checkout / ".venv" / side / "up-to-date").write_text(digest(checkout, made_from))


@pytest.mark.parametrize("line", LOCKS)
def test_an_environment_is_up_to_date_until_what_it_was_made_from_changes_or_it_moves(
    checkout: Path, line: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    variables = {"TFX_EDGE_LINE": line, "TFX_EDGE_PYTHON": "/no/such/python"}
    stamp, python = checkout / ".venv" / "up-to-date", checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    made_from = [checkout / name for name in ("requirements/setup.sh", f"requirements/tfx-{line}.txt", "setup.py", "pyproject.toml")]
    stamp.write_text(digest(checkout, made_from))
    stamp_sides(checkout)
    run = set_up(checkout, **variables)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")

    def is_made_again(where: Path = checkout) -> bool:
        return set_up(where, **variables).returncode == 1  # it gets as far as to miss the Python

    for path in made_from:
        before = path.read_bytes()
        path.write_bytes(before + b"#\n")
        stamp_sides(checkout)
        assert is_made_again(), path
        path.write_bytes(before)
    stamp_sides(checkout)
    assert not is_made_again()
    assert is_made_again(shutil.copytree(checkout, tmp_path_factory.mktemp("other") / "moved", symlinks=True))
    python.unlink()
    assert is_made_again()


@pytest.fixture
def made(checkout: Path) -> Path:
    """A checkout whose .venv is up to date, with a uv that writes down how it was called and, without FAIL, makes a Python."""
    variables = checkout / ".venv" / "bin"
    variables.mkdir(parents=True)
    (variables / "python").symlink_to(sys.executable)
    (variables / "uv").write_text(
        '#!/bin/sh\necho "$@" >>calls\n'
        '[ -z "$FAIL" ] || { echo "error: no wheels of tflite-micro" >&2; exit 1; }\n'
        '[ "$1" != venv ] || { mkdir -p "$4/bin" "$4/lib/python3.10/site-packages" && ln -s /bin/true "$4/bin/python"; }\n'
    )
    (variables / "uv").chmod(0o755)
    made_from = [checkout / name for name in ("requirements/setup.sh", "requirements/tfx-1.16.txt", "setup.py", "pyproject.toml")]
    (checkout / ".venv" / "up-to-date").write_text(digest(checkout, made_from))
    return checkout


def calls(made: Path, side: str) -> list[str]:
    return [line for line in (made / "calls").read_text().splitlines() if f".venv/{side}" in line]


@pytest.mark.parametrize("side", SIDES)
def test_a_side_environment_is_made_once_from_its_lock_with_hashes_and_wheels_alone(made: Path, side: str) -> None:
    for _ in range(2):
        run = set_up(made, TFX_EDGE_LINE="1.16")
        assert (run.returncode, run.stderr) == (0, "")
    venv, sync = calls(made, side)
    assert venv == f"venv --python .venv/bin/python .venv/{side}"
    assert sync.split()[-1] == f"requirements/{side}.txt" and {"--require-hashes", "--only-binary"} <= set(sync.split())
    assert (made / ".venv" / side / "bin" / "python").exists()
    links = [link.resolve() for link in (made / ".venv" / side).glob("lib/*/site-packages/tfx_edge")]
    assert links == ([made] if side == "device" else []), "a device runs this checkout's code, the tools import nothing of it"
    lock = made / "requirements" / f"{side}.txt"
    lock.write_text(lock.read_text() + "#\n")
    set_up(made, TFX_EDGE_LINE="1.16")
    assert len(calls(made, side)) == 4 and len((made / "calls").read_text().splitlines()) == 6, "the other one is left as it is"


def test_where_there_are_no_wheels_one_line_for_each_side_environment_says_so_once_and_set_up_goes_on(made: Path) -> None:
    run = set_up(made, TFX_EDGE_LINE="1.16", FAIL="1")
    assert run.returncode == 0
    said = {"targets": "targets tflm and ethos-u can't be judged here", "device": "the device client can't run here"}
    assert run.stderr.splitlines() == [
        f"set-up: {said[side]} (to try again: rm -r .venv/{side}): making .venv/{side} failed: error: no wheels of tflite-micro"
        for side in SIDES
    ]
    again = set_up(made, TFX_EDGE_LINE="1.16", FAIL="1")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    for side in SIDES:
        assert not (made / ".venv" / side / "bin").exists()
        shutil.rmtree(made / ".venv" / side)
    assert set_up(made, TFX_EDGE_LINE="1.16").stderr == ""
    assert all((made / ".venv" / side / "bin" / "python").exists() for side in SIDES)


def test_the_lock_of_a_device_pins_every_package_with_hashes_and_has_what_the_base_and_its_extra_ask_for() -> None:
    lock = ROOT / "requirements" / "device.txt"
    check_pins(lock, at_least=10)
    pinned = dict(re.findall(r"^([a-z0-9][\w.\-]*)==([^\s;]+)", lock.read_text(), re.MULTILINE))
    asked = [
        *declared_requirements("dependencies"),
        Requirement(re.search(r'^device = \["(.+)"\]', (ROOT / "pyproject.toml").read_text(), re.M)[1]),
    ]
    source = [Requirement(line) for line in lock.with_suffix(".in").read_text().splitlines() if not line.startswith("#")]
    assert {(r.name, *sorted(r.extras)) for r in source} == {(r.name, *sorted(r.extras)) for r in asked}, "no more and no less"
    assert all(requirement.specifier.contains(pinned[requirement.name]) for requirement in asked)
    assert not {"tensorflow", "tfx", "apache-beam"} & set(pinned)


@pytest.mark.parametrize("line", LOCKS)
def test_a_lock_pins_every_package_with_hashes(line: str) -> None:
    check_pins(ROOT / "requirements" / f"tfx-{line}.txt", at_least=150)


def test_the_lock_of_the_tools_pins_every_package_with_hashes_and_has_what_the_extra_asks_for() -> None:
    lock = ROOT / "requirements" / "targets.txt"
    check_pins(lock, at_least=5)
    pinned = dict(re.findall(r"^([a-z0-9][\w.\-]*)==([^\s;]+)", lock.read_text(), re.MULTILINE))
    asked = declared_requirements("targets")
    assert {r.name for r in asked} == {"ethos-u-vela", "tflite-micro"}
    assert all(r.specifier.contains(pinned[r.name], prereleases=True) for r in asked)


def check_pins(lock: Path, at_least: int) -> None:
    entries = [entry for entry in re.split(r"\n(?=[a-z0-9])", lock.read_text()) if not entry.startswith("#")]
    assert len(entries) >= at_least
    for entry in entries:
        assert re.match(r"[\w.\-\[\]]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("line", LOCKS)
def test_a_lock_satisfies_the_base_and_the_extras_of_a_pipeline_machine(line: str) -> None:
    pinned = {}
    for entry in re.finditer(r"^([a-z0-9][\w.\-]*)==([^\s;]+)", (ROOT / "requirements" / f"tfx-{line}.txt").read_text(), re.MULTILINE):
        pinned.setdefault(entry[1], []).append(entry[2])
    for requirement in declared_requirements("dependencies", "kubeflow", "tfx"):
        if requirement.name == "tfx-edge":
            continue
        versions = pinned.get(requirement.name.lower().replace("_", "-"))
        assert versions, f"{requirement.name} is not in the lock"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def declared_requirements(*keys: str) -> list[Requirement]:
    """Base dependencies or extras out of pyproject.toml; TOML's strings are all that is needed of it."""
    text = (ROOT / "pyproject.toml").read_text()
    lists = [re.search(rf"^{key} = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)[1] for key in keys]
    return [Requirement(name) for part in lists for name in re.findall(r'^\s*"([^"]+)"', part, re.MULTILINE)]

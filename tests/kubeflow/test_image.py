"""What the image is built from and how, without building it; `kubeflow/engine/image.sh` builds and judges it."""

import os
import re
import socketserver
import subprocess
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from docker.utils.build import PatternMatcher

from tfx_edge.schemas.beam import WHEEL

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "kubeflow" / "Dockerfile").read_text()
INSTALL = (ROOT / "kubeflow" / "image" / "install.sh").read_text()
ENGINE = ROOT / "kubeflow" / "engine"
LOCKS = ("requirements/tfx-1.21.txt", "requirements/targets.txt")
STAGES = [stage.splitlines() for stage in re.split(r"^FROM ", DOCKERFILE.replace("\\\n", " "), flags=re.MULTILINE)[1:]]
LEFT_OUT = ("kubeflow/Dockerfile", "kubeflow/engine/", "kubeflow/environments/", "kubeflow/manifests/")


def folders():
    """setup.py's FOLDERS, read without running its setup()."""
    return re.findall(r'"(\w+)"', re.search(r"^FOLDERS = \(\n(.*?)^\)$", (ROOT / "setup.py").read_text(), re.MULTILINE | re.DOTALL)[1])


def known_to_git():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.rstrip("\0").split("\0")
    return {name for name in names if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def context():
    """What a builder gets to see, by Docker's own reading of .dockerignore."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    names = PatternMatcher(patterns).walk(str(ROOT))
    return {name for name in names if (ROOT / name).is_file()} - {".dockerignore"}  # which that reading always adds


def copied(stage):
    """The sources of COPY that come from the context."""
    instructions = [line.split() for line in stage if line.startswith("COPY ") and "--from" not in line]
    return [source for _, *sources, _ in instructions for source in sources]


def test_a_build_sees_every_file_of_the_packages(context):
    wanted = {name for name in known_to_git() if name.split("/")[0] in folders() and not name.startswith(LEFT_OUT)}
    assert len(wanted) > 200 and wanted - context == set()


def test_a_build_sees_nothing_but_the_packages_and_what_it_is_made_by(context):
    others = {name for name in context if name.split("/")[0] not in folders()}
    assert others == {"LICENSE", "README.md", "__init__.py", "py.typed", "pyproject.toml", "setup.py", *LOCKS}
    assert [name for name in context if name.startswith(LEFT_OUT) or "__pycache__" in name] == []


def test_a_build_sees_all_that_the_dockerfile_copies(context):
    sources = [source for stage in STAGES for source in copied(stage)]
    assert "requirements/tfx-1.21.txt" in sources and "." in sources
    for source in sources:
        assert source == "." or any(name == source or name.startswith(source.rstrip("/") + "/") for name in context), source


def test_the_modules_that_the_image_leaves_out_are_not_imported_by_those_it_holds(context):
    imports = re.compile(
        r"tfx_edge\.kubeflow\.(manifests|environments|engine)\b|tfx_edge\.kubeflow import (manifests|environments|engine)\b"
    )
    assert [name for name in context if name.endswith(".py") and imports.search((ROOT / name).read_text())] == []


def test_the_wheel_lies_where_beam_looks_for_it():
    (folder,) = re.findall(r"--wheel-dir (\S+)", DOCKERFILE)
    (source, target), *others = [
        copy for copy in re.findall(r"^COPY --from=builder (\S+) (\S+)$", DOCKERFILE, re.MULTILINE) if folder.startswith(copy[0])
    ]
    assert others == [] and str(Path(WHEEL).parent) == folder.replace(source, target, 1)


def test_packages_come_from_the_locks_with_their_hashes():
    assert "--verify-hashes" in INSTALL and INSTALL.count("--require-hashes") == 2
    assert set(re.findall(r"requirements/\S+\.txt", INSTALL)) == set(LOCKS)
    for lock in LOCKS:
        entries = re.split(r"\n(?=[a-z0-9])", (ROOT / lock).read_text().replace("\\\n", ""))
        assert [entry.split()[0] for entry in entries if "==" in entry.split("--hash")[0] and "--hash=sha256:" not in entry] == []


def test_the_image_itself_is_built_on_the_stage_without_a_compiler():
    *named, image = STAGES
    names = {stage[0].split(" AS ")[-1]: stage for stage in named}
    assert image[0] == "python"
    assert "g++" in "".join(names["builder"])
    for stage in (names["python"], image):
        assert re.findall(r"g\+\+|gcc|-dev\b|build-essential|python3-venv", "".join(stage)) == []


def test_the_image_runs_as_a_user_by_number_and_not_as_root():
    (user,) = [line.split()[1] for line in STAGES[-1] if line.startswith("USER ")]
    uid, gid = user.split(":")
    assert int(uid) > 0 and int(gid) == 0  # group 0 is what clusters give an arbitrary user


def test_what_changes_with_each_commit_comes_behind_the_large_layers():
    position = {
        line.split(" ")[0] + " " + line.split(" ")[1]: number for number, line in enumerate(STAGES[-1]) if line.startswith(("COPY", "ARG"))
    }
    assert max(position["COPY --from=builder"], 0) < min(position["ARG VERSION=dev"], position["ARG REVISION=unknown"])


def test_base_and_index_are_arguments_whose_defaults_are_the_public_ones():
    assert "ARG BASE=docker.io/library/debian:trixie-slim\n" in DOCKERFILE and "FROM ${BASE} AS python" in DOCKERFILE
    assert "ARG INDEX=https://pypi.org/simple\n" in DOCKERFILE


@pytest.mark.parametrize(
    "path",
    [ROOT / "kubeflow" / "Dockerfile", ROOT / "kubeflow" / "image" / "install.sh", *sorted(ENGINE.iterdir())],
    ids=lambda path: path.name,
)
def test_nothing_of_one_machine_stands_in_what_builds_the_image(path):
    text = path.read_text()
    hosts = set(re.findall(r"https?://([^/\s\"}]+)", text))
    assert hosts <= {"pypi.org", "deb.debian.org", "engine"}  # `engine` is a name for whoever answers at the socket
    assert re.findall(r"/work\b|/home/|/root/|pip\.conf|://[^/\s]*@|trusted-host", text) == []


@pytest.mark.parametrize("script", [*sorted(ENGINE.iterdir()), ROOT / "kubeflow" / "image" / "install.sh"], ids=lambda path: path.name)
def test_scripts_are_executable_and_are_bash(script):
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/_ping" else 404)
        self.end_headers()

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass


def engine(*arguments, **env):
    return subprocess.run([ENGINE / "engine.sh", *arguments], env={**os.environ, **env}, capture_output=True, text=True)


def test_an_engine_that_answers_is_left_as_it_is(tmp_path):
    """Nothing is installed, started or set."""
    socket = tmp_path / "docker.sock"
    home = {"TFX_EDGE_ENGINE_HOME": str(tmp_path / "home")}
    with socketserver.UnixStreamServer(str(socket), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = engine("up", DOCKER_HOST=f"unix://{socket}", **home)
        server.shutdown()
    made = (tmp_path / "home").exists()
    engine("down", **home)  # what a broken script started
    assert (done.returncode, done.stdout, done.stderr, made) == (0, "", "", False)


def test_engine_down_without_an_engine_does_nothing(tmp_path):
    assert engine("down", TFX_EDGE_ENGINE_HOME=str(tmp_path)).returncode == 0


def test_a_word_that_engine_doesnt_know_shows_how_it_is_used():
    done = engine("start")
    assert done.returncode == 2 and "engine.sh up" in done.stderr and "engine.sh down" in done.stderr


def test_the_image_installs_what_the_extra_asks_for():
    """install.sh names the extra; pyproject.toml has it."""
    (extra,) = re.findall(r"--extra (\w+)", INSTALL)
    assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()

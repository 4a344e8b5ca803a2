"""Packages in Git against the code that they were compiled from."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfx_edge.kubeflow.manifests.committed import FOLDER, committed, head, overlays
from tfx_edge.kubeflow.manifests.difference import first_difference
from tfx_edge.schemas import EdgeError

IMAGE = "registry.example.com/other@sha256:" + "1" * 64


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of kubeflow/manifests beside its environments."""
    shutil.copytree(FOLDER.parent / "environments", tmp_path / "kubeflow" / "environments")
    return Path(shutil.copytree(FOLDER, tmp_path / "kubeflow" / "manifests"))


@pytest.mark.parametrize("overlay", overlays())
def test_the_committed_packages_are_in_step_with_the_code(overlay: str) -> None:
    for each in committed(overlay):
        each.check()


def test_a_package_that_fell_behind_is_told_with_file_and_place(checkout: Path) -> None:
    environment = checkout.parent / "environments" / "dataflow.yaml"
    environment.write_text(environment.read_text().replace("max_workers: 8", "max_workers: 9"))
    [each] = committed("dataflow", checkout)
    place = r"dataflow/digits.yaml isn't what the code compiles to: PipelineVersion\.spec\..*args\[\d+\] is .*8'"
    with pytest.raises(EdgeError, match=place) as error:
        each.check()
    assert "\n" not in str(error.value)
    each.update(None, "0a1b2c")
    each.check()
    assert each.pinned()[1] == "0a1b2c"


def test_image_and_version_are_those_of_the_package(checkout: Path) -> None:
    environment = checkout.parent / "environments" / "cluster.yaml"
    environment.write_text(environment.read_text().replace("  Trainer:\n", f"  Trainer:\n    image: {IMAGE.replace('1', '2')}\n"))
    [each] = committed("cluster", checkout)
    each.update(IMAGE, "0a1b2c")
    assert each.pinned() == (IMAGE, "0a1b2c")
    each.file.write_text(each.file.read_text().replace("sdkVersion: tfx-", "sdkVersion: another-"))
    each.check()
    with pytest.raises(EdgeError, match="image 'edge:latest' has no digest"):
        each.update("edge:latest", "0a1b2c")
    each.file.write_text(each.file.read_text().replace(f"image: {IMAGE}", "image: another", 1))
    with pytest.raises(EdgeError, match="digits.yaml: expected one image, got another, registry"):
        each.check()


@pytest.mark.parametrize("text", ["", "kind: Pipeline\n", "- 1\n", "a: [\n", None])
def test_a_file_that_is_no_package_is_told(checkout: Path, text: str | None) -> None:
    [each] = committed("cluster", checkout)
    each.file.unlink()
    if text is not None:
        each.file.write_text(text)
    with pytest.raises(EdgeError, match=r"digits.yaml: holds no Pipeline and PipelineVersion .* update cluster --image"):
        each.check()


def test_an_unknown_cluster_is_told_with_those_that_are_there(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match=r"overlay 'prod': .*expected one of cluster, dataflow"):
        committed("prod", checkout)
    with pytest.raises(EdgeError, match="no overlay there; run this in a checkout"):
        overlays(tmp_path)


def test_the_command_fails_with_one_line_and_status_1(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfx_edge.kubeflow.manifests", "check", "prod"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: overlay 'prod'") and done.stderr.count("\n") == 1


def test_a_version_is_named_after_a_commit_that_holds_everything_but_the_packages(checkout: Path, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        return subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    assert head(checkout) == git("rev-parse", "HEAD")
    package_file = checkout / "overlays" / "cluster" / "digits.yaml"
    package_file.write_text("changed")
    assert head(checkout) == git("rev-parse", "HEAD")
    (tmp_path / "kubeflow" / "environments" / "cluster.yaml").write_text("image: changed\n")
    with pytest.raises(EdgeError, match="kubeflow/environments/cluster.yaml isn't committed"):
        head(checkout)


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1}}, None),
        ({"a": {"b": 1}}, {"a": {}}, "a.b is not expected"),
        ({}, {"a": 1}, "a is missing"),
        ({"a": [1]}, {"a": [1, 2]}, "a has 1 items, not 2"),
        ({"a": 1}, {"a": 1.0}, "a is 1, not 1.0"),
        ({"a": "x" * 100 + "1"}, {"a": "x" * 100 + "2"}, "a is '" + "x" * 20 + "1', not '" + "x" * 20 + "2'"),
    ],
)
def test_a_difference_is_told_by_its_place(ours: Any, theirs: Any, text: str | None) -> None:
    assert first_difference(ours, theirs) == text

"""Packages that are kept in Git, compiled for one cluster each, and whether they are what the code compiles to.

A version is named after the commit that held the code and the environment when it was compiled; the package itself is in a later one,
since a commit can't hold its own name. Image and version are therefore read from the package, everything else is compiled anew.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tfx_edge.kubeflow import package
from tfx_edge.kubeflow.compile.compiler import compile_pipeline
from tfx_edge.kubeflow.manifests.difference import first_difference
from tfx_edge.schemas import EdgeError, KubeflowConfig

FOLDER = Path(__file__).parent
PIPELINES = {"digits": "tfx_edge.pipelines.digits:create_pipeline"}
"""What stands in each overlay as `<name>.yaml`."""
UPDATE = "python -m tfx_edge.kubeflow.manifests update"


@dataclass(frozen=True)
class Committed:
    """A package in an overlay.

    Attributes:
        name: of the pipeline, a key of PIPELINES.
        overlay: its folder, which is named as the environment.
    """

    name: str
    overlay: Path

    @property
    def file(self) -> Path:
        return self.overlay / f"{self.name}.yaml"

    def environment(self) -> KubeflowConfig:
        """That of the overlay's cluster."""
        return package.read_config(self.overlay.parents[2] / "environments" / f"{self.overlay.name}.yaml")

    def compiled(self, image: str, version: str) -> str:
        """What the code compiles to."""
        return compile_pipeline(PIPELINES[self.name], self.environment(), image=image, version=version)

    def pinned(self) -> tuple[str, str]:
        """Image and version of the package as it is in Git.

        Raises:
            EdgeError: there is none, or it isn't one.
        """
        try:
            resource = _resources(self.file.read_text())["PipelineVersion"]
            executors = resource["spec"]["pipelineSpec"]["deploymentSpec"]["executors"]
            images = {executor["container"]["image"] for executor in executors.values() if "container" in executor}
            version = resource["metadata"]["name"].removeprefix(f"{resource['spec']['pipelineName']}-")
        except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
            text = f"{self.file}: holds no Pipeline and PipelineVersion ({type(error).__name__}); write it: {UPDATE} {self.overlay.name}"
            raise EdgeError(f"{text} --image REPOSITORY@sha256:...") from error
        images -= {own.image for own in self.environment().components.values()}
        if len(images) != 1:
            raise EdgeError(f"{self.file}: expected one image, got {', '.join(sorted(images)) or 'none'}; name it by --image")
        return images.pop(), version

    def check(self) -> None:
        """Compares it with what the code compiles to.

        Raises:
            EdgeError: they differ; the text names the file and the first place.
        """
        image, version = self.pinned()
        ours, theirs = _resources(self.file.read_text()), _resources(self.compiled(image, version))
        if difference := first_difference(ours, theirs):
            fix = f"commit the code, then {UPDATE} {self.overlay.name}"
            raise EdgeError(f"{self.file} isn't what the code compiles to: {difference}; {fix}")

    def update(self, image: str | None, version: str) -> None:
        """Writes it anew; without an image with the one that it has."""
        package.write(self.file, self.compiled(image or self.pinned()[0], version))


def overlays(folder: Path = FOLDER) -> tuple[str, ...]:
    """The clusters' names.

    Raises:
        EdgeError: none here; the installed package has none.
    """
    names = tuple(sorted(file.parent.name for file in folder.glob("overlays/*/kustomization.yaml")))
    if not names:
        raise EdgeError(f"{folder / 'overlays'}: no overlay there; run this in a checkout")
    return names


def committed(overlay: str, folder: Path = FOLDER) -> tuple[Committed, ...]:
    """The packages of a cluster.

    Raises:
        EdgeError: there is no such cluster.
    """
    if overlay not in overlays(folder):
        raise EdgeError(f"overlay {overlay!r}: not in {folder / 'overlays'}; expected one of {', '.join(overlays(folder))}")
    return tuple(Committed(name, folder / "overlays" / overlay) for name in PIPELINES)


def head(folder: Path = FOLDER) -> str:
    """The checkout's commit.

    Raises:
        EdgeError: it isn't one, or has changes that no commit holds, so that a version named after it would be a lie.
    """
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--", ":/", ":(exclude,glob)**/overlays/*/*.yaml")
    except (OSError, subprocess.CalledProcessError) as error:
        raise EdgeError(f"{folder}: git doesn't tell the commit ({error}); name the version by --version") from error
    if changed:
        first = changed.splitlines()[0].split()[-1]
        raise EdgeError(f"{first} isn't committed, and the version is named after the commit; commit it first, or give --version")
    return commit


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _resources(text: str) -> dict[str, Any]:
    """By kind. What compiled it is left out: the lines of TFX make the same package and sign it with their own names."""
    found = {resource["kind"]: resource for resource in yaml.safe_load_all(text)}
    found["PipelineVersion"]["spec"]["pipelineSpec"].pop("sdkVersion", None)
    return found

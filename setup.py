"""Maps the repository's root to the package `tfx_edge`, so that its folders stand at top level and import as `tfx_edge.<folder>`."""

from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = ("schemas", "optimize", "litert", "release", "device", "components", "pipelines", "kubeflow", "cli")
ROOT = Path(__file__).parent

setup(
    package_dir={"tfx_edge": "."},
    packages=["tfx_edge"] + [f"tfx_edge.{p}" for p in find_packages(str(ROOT), include=[g for f in FOLDERS for g in (f, f"{f}.*")])],
)

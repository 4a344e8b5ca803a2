"""Maps the repository's root to the package `tfx_edge`, so that its folders stand at top level and import as `tfx_edge.<folder>`."""

from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

FOLDERS = (
    "schemas",
    "observability",
    "profiling",
    "report",
    "optimize",
    "litert",
    "release",
    "device",
    "components",
    "pipelines",
    "kubeflow",
    "cli",
)
ROOT = Path(__file__).parent


class BuildPy(build_py):
    """Leaves this file out, which lies where the package's own modules do."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """The modules of a package, as (package, module, file)."""
        return [module for module in super().find_package_modules(package, package_dir) if module[:2] != ("tfx_edge", "setup")]


setup(
    package_dir={"tfx_edge": "."},
    packages=["tfx_edge"] + [f"tfx_edge.{p}" for p in find_packages(str(ROOT), include=[g for f in FOLDERS for g in (f, f"{f}.*")])],
    cmdclass={"build_py": BuildPy},
)

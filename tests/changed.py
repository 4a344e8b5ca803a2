"""Runs the unit tests of what changed since main: a module's tests lie in tests/ under the module's own path.

`optimize/pruning/algorithm.py` has its tests in `tests/optimize/test_pruning*.py`, `cli/demo.py` in `tests/cli/`: a changed
module stands for the test files that carry its name or its folder's, and where there is none, for its folder's tests.
Whole pipelines (`tests/e2e`) are left to `make test`.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
_PACKAGING = ("setup.py", "pyproject.toml", "requirements")  # their tests lie right in tests/


def changed_files() -> list[Path]:
    """Files that differ from the last common commit with main, and those that git doesn't track yet."""

    def git(*arguments: str) -> list[Path]:
        run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        return [Path(line) for line in run.stdout.splitlines()]

    base = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return sorted({*git("diff", "--name-only", base or "HEAD"), *git("ls-files", "--others", "--exclude-standard")})


def tests_of(path: Path) -> list[Path]:
    """The test files that stand for a changed file; none for what has no unit tests."""
    if path.parts[0] == "tests":
        is_test = path.name.startswith("test_") and path.parts[1] != "e2e" and (ROOT / path).exists()
        return [ROOT / path] if is_test else []
    if path.parts[0] in _PACKAGING:
        return sorted(TESTS.glob("test_*.py"))
    folder = TESTS / path.parts[0]
    if path.suffix != ".py" or len(path.parts) == 1 or not folder.is_dir():
        return []
    names = [path.stem, *path.parts[1:-1]]
    named = [test for name in names for test in folder.glob(f"test_{name}*.py")]
    return sorted(set(named)) or sorted(folder.glob("test_*.py"))


def main() -> int:
    """Runs pytest on them; nothing changed is a success."""
    tests = sorted({str(test) for path in changed_files() for test in tests_of(path)})
    if not tests:
        print("no unit tests for what changed since main")
        return 0
    return subprocess.run([Path(sys.executable).with_name("pytest"), *tests], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

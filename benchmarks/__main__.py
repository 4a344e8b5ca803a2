"""Runs benchmarks, prints one JSON line a figure, keeps them in `results.json`; exit status 1 when a goal is missed."""

import importlib
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
_HARNESS = ("__init__", "__main__", "figure")
_PACKAGES = ("tfx-edge", "tfx", "tensorflow", "tf-keras", "ai-edge-litert", "litert-quantizer", "apache-beam", "numpy", "pydantic")


def names() -> list[str]:
    """The benchmarks that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in _HARNESS)


def main(wanted: list[str]) -> int:
    """Runs the wanted benchmarks, or all."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}", file=sys.stderr)
        return 1
    measured = []
    for name in wanted or names():
        for figure in importlib.import_module(f"benchmarks.{name}").figures():
            measured.append(figure)
            print(json.dumps(figure.as_json()), flush=True)
    _keep({figure.name: figure.as_json() for figure in measured})
    return 0 if all(figure.reached for figure in measured) else 1


def _keep(figures: dict[str, object]) -> None:
    """Replaces the figures measured now; those of other benchmarks stay."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"figures": {}}
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "system": platform.system(), "python": platform.python_version()}
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    results = {"machine": machine, "versions": versions, "figures": dict(sorted({**results["figures"], **figures}.items()))}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

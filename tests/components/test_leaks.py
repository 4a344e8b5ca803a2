"""Each executor again and again in one process: its memory stays flat.

What it costs is mostly TensorFlow's imports in conversions' child processes, so the slow ones run with `make leaks` alone.
"""

import ctypes
import gc
import shutil
import statistics
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import psutil
import pytest
from executor_runs import Run, executor_runs

RUNS, WARM_UP = 20, 5
MIB = 2**20

# MiB a run. What is left after the warm-up is TensorFlow's: an empty `fit` of a model that is forgotten leaves as much.
BOUNDS = {
    "EdgePromoter": 0.1,
    "ModelImporter": 0.2,
    "ModelSelector": 0.1,
}
SLOW_BOUNDS = {
    "CalibrationGen": 0.2,
    "Clusterer": 0.7,
    "CompressionTuner": 0.7,
    "Distiller": 0.7,
    "EdgeValidator": 0.7,
    "LowRankFactorizer": 0.7,
    "Pruner": 0.7,
    "Quantizer": 0.2,
    "TFLiteExporter": 0.2,
}


def own_memory() -> int:
    """Bytes that this process alone holds, without what the allocator keeps for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_full_info().uss)


def growth(run: Run, folder: Path, times: int = RUNS) -> float:
    """MiB that each run adds, after a warm-up: the median of the slopes between all pairs of runs (Theil and Sen)."""
    sizes = []
    for _ in range(times):
        run(folder)
        shutil.rmtree(folder, ignore_errors=True)
        sizes.append(own_memory() / MIB)
    return slope(sizes[WARM_UP:])


def slope(sizes: list[float]) -> float:
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(sizes), 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return executor_runs(tmp_path_factory.mktemp("inputs") / "of")


@pytest.mark.parametrize("component", [*BOUNDS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_BOUNDS)])
def test_an_executor_that_runs_20_times_leaves_no_memory_behind(component: str, runs: dict[str, Run], tmp_path: Path) -> None:
    bound = {**BOUNDS, **SLOW_BOUNDS}[component]
    found = growth(runs[component], tmp_path / "run")
    print(f"{component}: {found:.3f} MiB a run, bound {bound}")  # noqa: T201 - pytest -rP shows it, for docs/profiling.md
    assert found < bound


def test_every_executor_of_the_suite_has_a_bound(runs: dict[str, Run]) -> None:
    import tfx_edge.components

    folders = {path.parent.name for path in Path(tfx_edge.components.__file__).parent.glob("*/executor.py")}
    named = {name.lower() for name in (*BOUNDS, *SLOW_BOUNDS)}
    assert named == {folder.replace("_", "") for folder in folders} == {name.lower() for name in runs}


def test_a_leak_is_seen_and_a_cache_that_fills_once_isnt(tmp_path: Path) -> None:
    kept: list[bytearray] = []

    def fills(_: Path) -> None:
        if len(kept) < 3:
            kept.append(bytearray(b"x" * 8 * MIB))

    leak: Callable[[Path], None] = lambda _: kept.append(bytearray(b"x" * 8 * MIB))  # noqa: E731
    assert growth(leak, tmp_path / "run", 12) == pytest.approx(8, abs=0.7)
    kept.clear()
    assert growth(fills, tmp_path / "run", 12) < 0.7  # TensorFlow's threads, where it is loaded, move it by some tenths

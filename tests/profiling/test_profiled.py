"""The profile of a piece of work: what its files say, and that they are there whole or not at all."""

import re
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tfx_edge.litert.activation_statistics import bin_counts
from tfx_edge.profiling import hot, profiled
from tfx_edge.schemas import EdgeError

VALUES = np.random.default_rng(0).normal(size=300_000).astype(np.float32)


def count_many() -> None:
    for _ in range(10):
        bin_counts(VALUES)


def busy() -> None:
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        sum(range(1000))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that hasn't imported it, whichever tests ran before."""
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)


@pytest.mark.usefixtures("without_tensorflow")
def test_the_files_say_where_time_and_memory_go(tmp_path: Path) -> None:
    kept: list[np.ndarray] = []
    with profiled(tmp_path, "work"):
        busy()
        count_many()
        peak = [np.ones(2**20) for _ in range(8)]  # 64 MiB
        time.sleep(0.3)
        del peak
        kept.append(np.ones(2**18))  # 2 MiB
    assert files(tmp_path) == {"work/flame.html", "work/lines.txt", "work/memory.txt"}
    flame, lines, memory = ((tmp_path / "work" / name).read_text() for name in ("flame.html", "lines.txt", "memory.txt"))
    assert "busy" in flame and "count_many" in flame
    [hits] = [line.split()[1] for line in lines.splitlines() if "counts: NDArray[np.int64] = np.bincount(" in line]
    assert hits == "10"
    held, grew = memory.split("What grew")
    [line] = [line for line in held.splitlines() if f"{__file__}:" in line and "MiB in" in line]
    assert float(line.split()[0]) == pytest.approx(64, abs=1)
    assert re.search(rf"\+2\.00 MiB in +\+\d+ blocks  {re.escape(__file__)}:", grew)
    assert float(re.search(r"([\d.]+) MiB  peak", memory)[1]) == pytest.approx(66, abs=4)
    assert not tracemalloc.is_tracing()


@pytest.mark.usefixtures("without_tensorflow")
def test_the_flame_graph_asks_for_nothing_over_the_network(tmp_path: Path) -> None:
    with profiled(tmp_path, "work"):
        busy()
    page = (tmp_path / "work" / "flame.html").read_text()
    addresses = {address for address in re.findall(r"https?://[^\s\"'`)<>]+", page) if "w3.org" not in address}  # names of XML's dialects
    assert not [address for address in addresses if "font" in address or re.search(r"\.(js|css|woff2?)\b", address)]
    assert """default-src 'unsafe-inline' data: blob:""" in page.split("<script")[0]


def test_tensorflows_profile_is_one_that_its_tools_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tf = pytest.importorskip("tensorflow")
    monkeypatch.setenv("TFX_EDGE_PROFILE_TOOLS", "tensorflow")
    with profiled(tmp_path, "work"):
        tf.linalg.matmul(tf.ones((64, 64)), tf.ones((64, 64)))
    [file] = files(tmp_path)
    assert re.fullmatch(r"work/tensorflow/plugins/profile/[^/]+/[^/]+\.xplane\.pb", file)
    content = (tmp_path / file).read_bytes()
    assert b"/host:CPU" in content and b"MatMul" in content


@pytest.mark.usefixtures("without_tensorflow")
def test_what_fails_comes_through_and_its_profile_is_there(tmp_path: Path) -> None:
    with pytest.raises(SystemExit), profiled(tmp_path, "work"):
        busy()
        sys.exit(3)
    assert "work/flame.html" in files(tmp_path)


@pytest.mark.usefixtures("without_tensorflow")
def test_nothing_is_left_where_a_file_cant_be_written_and_the_work_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tfx_edge.profiling.memory.FILE", "no/such/folder.txt")
    with profiled(tmp_path, "work"):
        done = True
    assert done and list(tmp_path.iterdir()) == [] and "no profile of work: FileNotFoundError" in caplog.text


def test_a_second_profile_gets_a_number_and_names_make_no_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFX_EDGE_PROFILE_TOOLS", "lines")
    for name in ("../a b", "../a b", "Pruner"):
        with profiled(tmp_path / "deep" / "profiles", name):
            pass
    assert files(tmp_path) == {f"deep/profiles/{name}/lines.txt" for name in ("_a_b", "_a_b-2", "Pruner")}


@pytest.mark.usefixtures("without_tensorflow")
def test_without_a_folder_and_inside_another_profile_nothing_happens(tmp_path: Path) -> None:
    with profiled(None, "work"), profiled("", "work"):
        assert not tracemalloc.is_tracing()
    with profiled(tmp_path / "outer", "outer"), profiled(tmp_path / "inner", "inner"):
        pass
    assert (tmp_path / "outer" / "outer" / "flame.html").exists() and not (tmp_path / "inner").exists()


@pytest.mark.parametrize(
    ("folder", "tools", "text"),
    [
        ("gs://bucket/profiles", "lines", "profile folder 'gs://bucket/profiles': expected a path on this machine"),
        ("{tmp}/file/below", "lines", "can't be written"),
        ("{tmp}", "lines,flames", "there is no 'flames'; expected some of tensorflow,flame,lines,memory"),
    ],
)
def test_what_cant_be_profiled_is_one_line_before_the_work(
    folder: str, tools: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TFX_EDGE_PROFILE_TOOLS", tools)
    with pytest.raises(EdgeError) as caught, profiled(folder.format(tmp=tmp_path), "work"):
        raise AssertionError("it ran")
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_without_the_extra_there_is_a_line_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("pyinstrument", "line_profiler") else object())
    with (
        pytest.raises(EdgeError, match="pyinstrument and line_profiler not installed; pip install 'tfx-edge\\[profile\\]'"),
        profiled(tmp_path, "work"),
    ):
        raise AssertionError("it ran")
    assert list(tmp_path.iterdir()) == []


def test_every_hot_function_is_there() -> None:
    import importlib

    for module, names in hot.HOT.items():
        found = importlib.import_module(f"tfx_edge.{module}")
        for name in names:
            assert hot.function_of(found, name).__module__ == f"tfx_edge.{module}"

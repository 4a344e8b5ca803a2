"""Checks that need no tool of their own: LiteRT on a CPU, a vendor's NPU, and finding the side environment."""

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.tools import flatbuffer_utils
from target_models import classifier, features, float_classifier, top_k

from tfx_edge.litert import inspect
from tfx_edge.litert.targets import check, side
from tfx_edge.schemas.target import Target, profile_names

NPUS = [name for name in profile_names() if name.startswith("npu-")]


def test_a_model_that_loads_and_runs_suits_a_cpu() -> None:
    for flatbuffer in (classifier(), float_classifier(None), top_k()):
        report = check(flatbuffer, Target(profile="litert-cpu"), features())
        assert report.reasons == ()
        assert report.tool == inspect.runtime()


def test_a_model_that_needs_a_newer_runtime_does_not_suit_this_cpu() -> None:
    parsed = inspect.parse(classifier())
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(b"99.0.0".ljust(16, b"\0"), np.uint8)
    entry.name, entry.buffer = b"min_runtime_version", len(parsed.buffers)
    parsed.buffers.append(buffer)
    parsed.metadata = [entry]
    (reason,) = check(bytes(flatbuffer_utils.convert_object_to_bytearray(parsed)), Target(profile="litert-cpu"), features()).reasons
    assert reason.startswith("litert-cpu: needs TensorFlow Lite 99.0.0, newer than LiteRT ")


@pytest.mark.parametrize("flatbuffer", [b"", b"PK\3\4" * 9, classifier()[:1000]])
@pytest.mark.parametrize("profile", profile_names())
def test_what_is_no_flatbuffer_is_a_reason_with_every_profile(profile: str, flatbuffer: bytes) -> None:
    (reason,) = check(flatbuffer, Target(profile=profile), features()).reasons
    assert reason.startswith(f"{profile}: ") and f"({len(flatbuffer)} bytes" in reason


@pytest.mark.parametrize("profile", NPUS)
def test_without_the_vendors_kit_that_is_the_reason(profile: str) -> None:
    target = Target(profile=profile, min_npu_share=0.9)
    report = check(classifier(), target, features())
    package = target.resolve().kit.replace("_", "-")
    assert report.reasons == (
        f"{profile}: the vendor's kit {package} isn't installed here; install it, which downloads it, where this runs",
    )
    assert report.measurements == {}


def test_with_a_kit_that_holds_no_compiler_the_compilers_words_are_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = tmp_path / "ai_edge_litert_sdk_qualcomm"
    kit.mkdir()
    (kit / "__init__.py").write_text(f"def path_to_sdk_libs():\n    return {str(tmp_path / 'libs')!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (reason,) = check(classifier(), Target(profile="npu-qualcomm"), features()).reasons
    assert reason.startswith("npu-qualcomm: the vendor's compiler failed: ") and "Plugin" in reason


def test_the_running_python_is_taken_where_it_has_the_tool_then_the_named_one_then_the_one_inside(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv(side.VARIABLE, raising=False)
    assert side.find_python("json", {side.VARIABLE: "/other/python"}) == Path(sys.executable)
    assert side.find_python("tflite_micro_", {side.VARIABLE: "/other/python"}) == Path("/other/python")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert side.find_python("tflite_micro_", {}) is None
    inside = tmp_path / "targets" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    inside.symlink_to(sys.executable)
    assert side.find_python("tflite_micro_", {}) == inside


def run(code: str, time_limit_s: float = 20.0) -> side.Run:
    return side.run(Path(sys.executable), ["-c", code], Path("/"), time_limit_s)


def test_how_a_process_ended_is_told_in_one_line() -> None:
    assert run("import time; time.sleep(9)", 0.2).fault("It", 0.2).startswith("It didn't finish within 0.2 s; ")
    killed = run(f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})")
    assert killed.fault("it", 20) == "the model ended it with SIGSEGV"
    assert run("print('a', file=__import__('sys').stderr); 1 / 0").fault("It", 20) == "It failed: ZeroDivisionError: division by zero"
    assert run("raise SystemExit(3)").fault("It", 20) == "It failed: no message"


def test_another_python_gets_none_of_this_ones_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    code = "import json, os; print(json.dumps(sorted(n for n in os.environ if n.startswith('PYTHON'))))"
    assert json.loads(side.run(other, ["-c", code], tmp_path, 20).stdout) == []
    assert "PYTHONPATH" in json.loads(run(code).stdout)

"""Calls in a process of their own: results and errors come back, and the caller outlives whatever happens there."""

import os
from pathlib import Path
from typing import Any

import pytest

from tfx_edge.litert.child import call_in_child
from tfx_edge.schemas import EdgeError

MODULE = """
import os, signal, sys, time
from tfx_edge.schemas import EdgeError

def add(note, a, b):
    return a + b, os.getpid(), "numpy" in sys.modules

def refuse(note):
    raise EdgeError("no such thing: 7, expected 8; give 8")

def fail(note):
    note("counting")
    raise KeyError("seven")

def die(note, number):
    note("loading it")
    os.kill(os.getpid(), number)

def sleep(note):
    note("dreaming")
    time.sleep(600)
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that the child finds too."""
    (tmp_path / "functions_for_a_child.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(tmp_path))
    import functions_for_a_child

    return functions_for_a_child


def test_the_result_comes_back_from_another_process(functions: Any) -> None:
    result, process, _ = call_in_child(functions.add, [1], [2], time_limit_s=60)
    assert result == [1, 2]
    assert process != os.getpid()


def test_a_users_mistake_comes_back_as_it_is(functions: Any) -> None:
    with pytest.raises(EdgeError, match="^no such thing: 7, expected 8; give 8$"):
        call_in_child(functions.refuse, time_limit_s=60)


def test_a_fault_of_ours_comes_back_with_its_traceback(functions: Any) -> None:
    with pytest.raises(RuntimeError, match="status 1 on counting:\n(.|\n)*KeyError: 'seven'"):
        call_in_child(functions.fail, time_limit_s=60)


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (9, "SIGKILL"), (40, "signal 40")])
def test_a_killed_process_is_an_error_that_says_what_it_was_doing(functions: Any, number: int, name: str) -> None:
    with pytest.raises(EdgeError, match=f"^loading it killed the process with {name};"):
        call_in_child(functions.die, number, time_limit_s=60)


def test_a_process_that_never_ends_is_ended(functions: Any) -> None:
    with pytest.raises(EdgeError, match=r"^dreaming didn't finish within 2\.5 s;"):
        call_in_child(functions.sleep, time_limit_s=2.5)


def test_the_process_finds_no_module_of_the_callers_folder(tmp_path: Path, functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "pickle.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path / "here")
    assert call_in_child(functions.add, 1, 2, time_limit_s=60)[0] == 3

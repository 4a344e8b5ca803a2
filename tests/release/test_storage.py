"""A folder as storage: writes that are whole, locks with an owner, and errors of one line."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tfx_edge.release.errors import ChannelBusyError, ChannelError
from tfx_edge.release.storage import LocalStorage

HOLDER = """
import sys
from pathlib import Path
from tfx_edge.release.storage import LocalStorage
with LocalStorage(Path(sys.argv[1])).lock("canary/lock"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_what_is_written_is_read_listed_and_removed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "new" / "channels")
    storage.write("a/b/c.json", b"one")
    storage.write("a/b/c.json", b"two")
    assert storage.read("a/b/c.json") == b"two" and storage.read("a/b/c.json", 2) == b"tw"
    assert storage.list("a") == ("a/b/c.json",) and storage.list("b") == ()
    storage.remove("a/b/c.json")
    storage.remove("a/b/c.json")
    with pytest.raises(FileNotFoundError):
        storage.read("a/b/c.json")
    with pytest.raises(FileNotFoundError):
        storage.read("a/b/c.json/d")


def test_folders_are_those_right_below_the_root(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "channels")
    assert storage.folders() == ()
    storage.write("b/c/d.json", b"")
    storage.write("a/x.json", b"")
    storage.write("file", b"")
    assert storage.folders() == ("a", "b")


def test_what_a_cut_short_write_left_is_listed_and_overwritten(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    (tmp_path / ".x.partial").write_bytes(b"half")
    assert storage.list("") == (".x.partial",)
    storage.write("x", b"whole")
    assert storage.list("") == ("x",)


def test_a_named_pipe_or_a_folder_isnt_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ChannelError, match="pipe: not a file"):
        LocalStorage(tmp_path).read("pipe")
    with pytest.raises(ChannelError, match="folder: can't be read: Is a directory"):
        LocalStorage(tmp_path).read("folder")


def test_what_the_system_refuses_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    storage = LocalStorage(tmp_path)
    refused = {
        "file/x": lambda path: storage.write(path, b""),
        f"{'n' * 300}": lambda path: storage.write(path, b""),
        "file/lock": lambda path: storage.lock(path).__enter__(),
        "folder": storage.remove,
    }
    (tmp_path / "folder").mkdir()
    for path, work in refused.items():
        with pytest.raises(ChannelError) as error:
            work(path)
        assert len(str(error.value).splitlines()) == 1 and str(tmp_path / path) in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_file_too_large_for_the_disk_leaves_no_part_of_itself(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from tfx_edge.release.storage import LocalStorage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
LocalStorage(sys.argv[1]).write("x", bytes(5000))
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, cwd="/")
    assert f"ChannelError: {tmp_path}/x: can't be written: File too large; make room" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_lock_is_for_one_process_names_it_and_ends_with_it_even_killed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as other:
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        with pytest.raises(ChannelBusyError, match=rf"canary: process {other.pid} on \S+ is changing it"), storage.lock("canary/lock"):
            pass
        with storage.lock("beta/lock"):
            pass
        other.kill()
        other.wait()
        with storage.lock("canary/lock"):
            assert f"process {os.getpid()} " in (tmp_path / "canary" / "lock").read_text()
            with pytest.raises(ChannelBusyError, match=f"process {os.getpid()} "), storage.lock("canary/lock"):
                pass


def test_files_are_as_open_to_others_as_the_user_makes_files(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        LocalStorage(tmp_path).write("a/x", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "x").stat().st_mode) == 0o644

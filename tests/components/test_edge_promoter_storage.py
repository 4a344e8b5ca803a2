"""Channels behind a URL: TFX's fileio as a channel's storage, and the lease that stands for a lock."""

import json
import resource
from pathlib import Path

import pytest
from release_channels import Fleet, bundle

from tfx_edge.components.edge_promoter.storage import FileioStorage
from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.errors import ChannelBusyError, ChannelError
from tfx_edge.release.storage import LocalStorage


def test_it_reads_a_folders_channel_as_the_folders_own_storage_does(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary")
    fleet.publish(bundle(1))
    remote, local = FileioStorage(str(tmp_path / "channels")), LocalStorage(tmp_path / "channels")
    assert remote.list("canary") == local.list("canary") != ()
    assert remote.list("") == local.list("") and remote.list("nowhere") == ()
    assert remote.folders() == local.folders() == ("canary",) and FileioStorage(str(tmp_path / "none")).folders() == ()
    verify_files(open_channel(remote, "canary"))


def test_files_are_written_over_read_in_part_and_removed(tmp_path: Path) -> None:
    storage = FileioStorage(str(tmp_path))
    storage.write("x/y", b"1")
    storage.write("x/y", b"22")
    assert storage.read("x/y") == b"22" and storage.read("x/y", 1) == b"2" and storage.list("x") == ("x/y",)
    storage.remove("x/y")
    storage.remove("x/y")
    assert storage.list("") == ()
    with pytest.raises(FileNotFoundError):
        storage.read("x/y")


def test_a_write_that_is_cut_short_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    storage = FileioStorage(str(tmp_path))
    storage.write("x/y", b"whole")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, limits[1]))  # bytes of a file, as on a disk that is full after them
    try:
        with pytest.raises(ChannelError, match=r"x/y: can't be written: .+") as refused:
            storage.write("x/y", b"a new one")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert storage.read("x/y") == b"whole" and len(str(refused.value).splitlines()) == 1


def test_what_a_filesystem_refuses_is_one_line_with_the_path() -> None:
    storage = FileioStorage("nosuch://fleet")
    for attempt in (lambda: storage.read("a"), lambda: storage.write("a", b""), lambda: storage.remove("a")):
        with pytest.raises(ChannelError, match=r"^nosuch://fleet/a: can't be \w+: .*'nosuch' not implemented.*$"):
            attempt()


def test_a_lease_keeps_a_second_writer_out_until_it_ends(tmp_path: Path) -> None:
    storage, other = FileioStorage(str(tmp_path)), FileioStorage(str(tmp_path))
    with (
        storage.lock("canary/lease"),
        pytest.raises(ChannelBusyError, match=r"canary: process \d+ on .* is changing it"),
        other.lock("canary/lease"),
    ):
        pass
    assert storage.list("") == ()
    with other.lock("canary/lease"):
        pass


@pytest.mark.parametrize("left", [json.dumps({"token": "dead", "owner": "a crash", "until": 1.0}), "[]", "cut sh"])
def test_a_lease_that_ran_out_or_cant_be_read_holds_nothing(tmp_path: Path, left: str) -> None:
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "lease").write_text(left)
    with FileioStorage(str(tmp_path)).lock("canary/lease"):
        pass
    assert not (tmp_path / "canary" / "lease").exists()


def test_a_lease_that_another_writer_took_over_is_left_to_it(tmp_path: Path) -> None:
    storage = FileioStorage(str(tmp_path))
    taken = json.dumps({"token": "another", "owner": "another", "until": 1.0}).encode()
    with storage.lock("canary/lease"):
        storage.write("canary/lease", taken)
    assert storage.read("canary/lease") == taken

"""What breaks under a device: its disk, its models, its power, and two updates at once."""

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import time
from datetime import datetime, timezone

import pytest
from device_client import Client, client, device_python, serving, without_proxies
from release_channels import Fleet, bundle, failing_bundle, flatbuffer, golden

from tfx_edge.device import trial
from tfx_edge.schemas import Cohort


@pytest.fixture
def fleet(tmp_path) -> Fleet:
    return Fleet(tmp_path, now=datetime.now(timezone.utc).replace(microsecond=0)).create("canary")


def runs(device: Client) -> bytes:
    return (device.current / "tflite").read_bytes()


@pytest.fixture
def two(fleet) -> tuple[Fleet, Client]:
    """A device that has releases 1 and 2."""
    device = client(fleet)
    for seed in (1, 2):
        fleet.publish(bundle(seed))
        device.update()
    return fleet, device


def flip(path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("what", ["model", "golden gone", "release gone", "folder gone"])
def test_a_damaged_model_gives_way_to_the_last_good_one_and_is_downloaded_anew(two, what) -> None:
    fleet, device = two
    shutil.move(fleet.folder / "channels/canary", fleet.folder / "away")
    current = device.current.resolve()
    if what == "model":
        flip(current / "tflite")
    elif what == "folder gone":
        shutil.rmtree(current)
    else:
        (current / ("edge/golden.npz" if what == "golden gone" else ".release.json")).unlink()
    said = device.update(1)  # the channel can't be reached, and still the device gets away from the damaged model
    assert "release 1 runs, after" in said and runs(device) == flatbuffer(1)
    shutil.move(fleet.folder / "away", fleet.folder / "channels/canary")
    assert "updated to release 2 from release 1" in device.update()
    assert runs(device) == flatbuffer(2)


def test_where_no_good_model_is_left_none_runs_and_the_device_says_so(two) -> None:
    fleet, device = two
    shutil.rmtree(fleet.folder / "channels/canary")
    for model in (device.state / "versions").glob("*/tflite"):
        flip(model)
    said = device.expect(1, "check")
    assert "no model runs, after release 2: tflite has another sha256" in said and "release 1: tflite has another sha256" in said
    assert not device.current.is_symlink() and "no model yet" in device.expect(1, "current")
    assert "(no model runs)" in device.update(1)


def test_check_reverts_a_model_that_no_longer_passes_and_an_update_does_not_bring_it_back(two) -> None:
    _, device = two
    assert device.expect(0, "check") == "release 2 is undamaged and passes its self-test\n"
    # What a new LiteRT may do to a model: its outputs are others now. The golden vectors are changed instead, with their digest.
    current = device.current.resolve()
    release = (current / ".release.json").read_text()
    other = golden(1002)
    (current / "edge/golden.npz").write_bytes(other)
    old = golden(2)
    release = release.replace(hashlib.sha256(old).hexdigest(), hashlib.sha256(other).hexdigest())
    release = release.replace(f'"size_bytes": {len(old)}', f'"size_bytes": {len(other)}')
    (current / ".release.json").write_text(release)
    assert device.expect(2, "check").startswith("went back to release 1, after release 2: self-test FAILED")
    assert runs(device) == flatbuffer(1)
    assert "it failed here before and isn't tried again; release 1 is kept" in device.update(2)


def test_after_a_change_of_litert_an_update_tests_the_model_that_runs_and_otherwise_not(two) -> None:
    _, device = two
    device.settings["selftest_seconds"] = 0.01
    assert device.update() == "release 2 runs, nothing newer is offered\n"
    device.settings["runtime"] = "2.22.0"
    assert "release 2: self-test took longer than 0.01 s; it is tried again, 1 of 3 times" in device.update(1)
    assert device.status().release == 2, "an interrupted test changes nothing"
    device.settings["selftest_seconds"] = 60
    assert device.update() == "release 2 runs, nothing newer is offered\n"
    assert device.status().release == 2


def test_a_test_that_is_killed_from_outside_isnt_the_models_fault_and_a_crash_is(tmp_path, monkeypatch) -> None:
    for name, raised in (("KILL", True), ("TERM", True), ("SEGV", False), ("ABRT", False)):
        python = tmp_path / name
        python.write_text(f"#!/bin/sh\nkill -{name} $$\n")
        python.chmod(0o755)
        monkeypatch.setattr(trial.sys, "executable", str(python))
        if raised:
            with pytest.raises(trial.InterruptedTestError, match=f"SIG{name}"):
                trial.failure(tmp_path, 60)
        else:
            assert trial.failure(tmp_path, 60) == f"self-test crashed: SIG{name}"


def test_a_folder_with_files_of_others_is_not_taken_for_the_clients(two, tmp_path) -> None:
    _, device = two
    (tmp_path / "mine" / "downloads").mkdir(parents=True)
    (tmp_path / "mine" / "downloads" / "a.txt").write_text("mine")
    device.settings["state"] = str(tmp_path / "mine")
    assert "has downloads in it, which isn't the client's" in device.update(1)
    assert (tmp_path / "mine" / "downloads" / "a.txt").read_text() == "mine"


def test_where_the_newest_release_fails_the_one_before_it_is_taken(fleet) -> None:
    fleet.publish(bundle(1))
    fleet.publish(failing_bundle(2), cohort=Cohort(targets=("litert-cpu",)))
    device = client(fleet)
    said = device.update(2)
    assert "updated to release 1" in said and "release 2 refused: self-test FAILED" in said
    assert runs(device) == flatbuffer(1)
    assert "release 1 is kept" in device.update(2)


def test_damaged_memory_of_the_client_costs_nothing(two) -> None:
    fleet, device = two
    for path in (device.state / "state.json", device.state / "metadata/timestamp.json", device.state / "metadata/targets.json"):
        path.write_bytes(b"\0" * 100)
    for path in (device.state / "metadata/root_history").iterdir():
        path.write_bytes(b"")
    (device.state / "metadata/root.json").unlink()
    assert device.update() == "release 2 runs, nothing newer is offered\n"
    fleet.publish(bundle(3))
    assert "updated to release 3" in device.update()


@pytest.mark.parametrize("limit", [0, 400, 1500, 4000])
def test_a_disk_that_takes_no_more_leaves_the_model_and_the_update_goes_on_once_there_is_room(two, limit) -> None:
    fleet, device = two
    fleet.publish(bundle(3).with_file("edge/ballast.bin", bytes(5000)))

    def no_file_larger() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    said = device.update(1, preexec_fn=no_file_larger)
    assert "File too large" in said and runs(device) == flatbuffer(2)
    assert "updated to release 3 from release 2" in device.update()
    assert runs(device) == flatbuffer(3) and not list(device.state.rglob(".partial-*"))


def test_a_release_without_room_is_not_begun(two) -> None:
    fleet, device = two
    fleet.publish(bundle(3))
    inside = f"mount -t tmpfs -o size=900k none {device.state} && exec {' '.join(device.command('update'))}"
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", inside], capture_output=True, text=True)
    if "unshare" in done.stderr:
        pytest.skip(f"no user namespaces here: {done.stderr.strip()}")
    assert done.returncode == 1 and "release 3 needs" in done.stderr and "are free; make room" in done.stderr


def test_one_update_at_a_time(fleet) -> None:
    fleet.publish(bundle(1))
    with serving(fleet.folder / "channels/canary") as server:
        device = client(fleet, source=server.url)
        release = []

        def waits(path: str) -> int | None:
            while path.endswith("timestamp.json") and not release:
                time.sleep(0.01)
            return None

        server.answer = waits
        first = subprocess.Popen(device.command("update"), cwd="/", env=without_proxies(), stdout=subprocess.PIPE, text=True)
        while not (device.state / "metadata").exists():
            time.sleep(0.01)
        assert "another update is running; wait until it has ended" in device.update(1, env=without_proxies())
        assert "another update is running" in device.expect(1, "check")
        release.append(True)
        assert first.communicate()[0] == "updated to release 1\n" and first.returncode == 0


def test_a_kill_before_the_swap_keeps_the_old_model_and_the_next_update_finds_the_rest_done(two) -> None:
    fleet, device = two
    fleet.publish(bundle(3))
    # The process kills itself where it would replace the link.
    code = (
        "import os, signal, sys; from tfx_edge.device import files; "
        "files.point = lambda *a: os.kill(os.getpid(), signal.SIGKILL); "
        f"from tfx_edge.device.__main__ import main; main([{str(device.folder / 'device.json')!r}])"
    )
    killed = subprocess.run([device_python(), "-c", code], cwd="/")
    assert killed.returncode == -signal.SIGKILL and runs(device) == flatbuffer(2)
    for file in (fleet.folder / "channels/canary/targets/bundles").rglob("*.tflite"):
        file.unlink()  # nothing is downloaded again
    assert "updated to release 3 from release 2" in device.update()
    assert runs(device) == flatbuffer(3) and device.status().versions == (3, 2)


def test_leftovers_are_cleaned_up(two) -> None:
    fleet, device = two
    for name in (".partial-state.json", "versions/.partial-9-x", "metadata/tmpabc", "downloads/.partial-x", "outbox/.partial-7.json"):
        (device.state / name).parent.mkdir(exist_ok=True)
        (device.state / name).write_text("")
    (device.state / "versions/9-unfinished").mkdir()
    (device.state / "downloads/old/edge").mkdir(parents=True)
    fleet.publish(bundle(3))
    device.update()
    left = [path for path in device.state.rglob("*") if path.name.startswith((".partial", "tmp")) or path.name in ("9-unfinished", "old")]
    assert left == []


def test_a_fresh_device_whose_first_model_fails_has_none(fleet) -> None:
    fleet.publish(failing_bundle(1))
    device = client(fleet)
    assert "there is none to keep" in device.update(2)
    assert not device.current.exists() and os.listdir(device.state / "downloads") == []

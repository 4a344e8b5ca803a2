"""Downloads that break off, and sources that give something else than what was signed."""

import itertools
import os
import subprocess
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
from device_client import Client, client, device_python, serving, without_proxies
from release_channels import Fleet, bundle, flatbuffer

from tfx_edge.release.bundle import Bundle
from tfx_edge.schemas.release import Release

BALLAST = bytes(range(256)) * 4096
"""1 MiB beside the model, so that a download takes many reads."""


@pytest.fixture
def fleet(tmp_path) -> Fleet:
    return Fleet(tmp_path, now=datetime.now(timezone.utc).replace(microsecond=0)).create("canary")


def large(seed: int) -> Bundle:
    return bundle(seed).with_file("edge/ballast.bin", BALLAST)


def served(fleet: Fleet, release: Release, name: str = "edge/ballast.bin") -> tuple[Path, str]:
    """The file of a release in the channel, and its path on a server of the channel."""
    folder, _, base = name.rpartition("/")
    file = next(file for file in release.files if file.path == name)
    path = f"targets/bundles/{release.bundle}/{folder}{'/' if folder else ''}{file.digest}.{base}"
    return fleet.folder / "channels" / "canary" / path, f"/{path}"


def updated(device: Client) -> None:
    assert "updated to release 1" in device.update()
    assert (device.current / "edge/ballast.bin").read_bytes() == BALLAST and (device.current / "tflite").read_bytes() == flatbuffer(1)


def test_a_folder_whose_file_is_still_being_copied_is_resumed_not_read_again(fleet) -> None:
    file, _ = served(fleet, fleet.publish(large(1)).release)
    device = client(fleet)
    file.write_bytes(BALLAST[:700_000])
    assert "ends after 700000 of 1048576 bytes; 700000 of 1048576 bytes are here, the rest comes with the next update" in device.update(1)
    # Only a client that doesn't read the first part again ends up with the right file.
    file.write_bytes(b"\0" * 700_000 + BALLAST[700_000:])
    updated(device)


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
def test_over_http_a_connection_that_breaks_is_resumed_where_the_server_knows_how(fleet, ranges) -> None:
    _, path = served(fleet, fleet.publish(large(1)).release)
    with serving(fleet.folder / "channels" / "canary") as server:
        server.ranges = ranges
        server.break_after[path] = 700_000
        device = client(fleet, source=server.url)
        updated_over_http(device)
    rest = len(BALLAST) - 700_000 if ranges else len(BALLAST)
    assert server.served[path] == [700_000, rest]
    assert (device.current / "edge/ballast.bin").read_bytes() == BALLAST


def updated_over_http(device: Client) -> None:
    assert "updated to release 1" in device.update(env=without_proxies())


def test_a_killed_download_is_resumed_by_the_next_update(fleet) -> None:
    _, path = served(fleet, fleet.publish(large(1)).release)
    with serving(fleet.folder / "channels" / "canary") as server:
        device = client(fleet, source=server.url)

        def stalls(asked: str, content: bytes):
            if asked == path and path not in server.served:
                return itertools.chain([content[:700_000]], (time.sleep(0.05) or b"" for _ in range(200)))
            return None

        server.body = stalls
        process = subprocess.Popen(device.command("update"), cwd="/", env=without_proxies())
        there = device.state / "downloads" / large(1).digest / "edge/ballast.bin"
        while not (there.exists() and there.stat().st_size > 0):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        have = there.stat().st_size
        assert 0 < have <= 700_000 and not device.current.exists()
        server.body = lambda asked, content: None
        updated_over_http(device)
        assert server.served[path][1:] == [len(BALLAST) - have]


@pytest.mark.parametrize("place", ["folder", "http"])
def test_a_part_of_something_else_is_thrown_away_and_the_file_downloaded_whole(fleet, place) -> None:
    release = fleet.publish(large(1)).release
    _, path = served(fleet, release)
    part = client(fleet).state / "downloads" / release.bundle / "edge" / "ballast.bin"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"\0" * 1000)
    (client(fleet).state / "lock").touch()
    if place == "folder":
        updated(client(fleet))
        return
    with serving(fleet.folder / "channels" / "canary") as server:
        updated_over_http(client(fleet, source=server.url))
    assert server.served[path] == [len(BALLAST) - 1000, len(BALLAST)]


@pytest.mark.parametrize("place", ["folder", "http"])
@pytest.mark.parametrize("name", ["tflite", "edge/golden.npz", "edge/manifest.json"])
def test_a_tampered_file_is_never_used_and_the_right_one_is_taken_later(fleet, place, name) -> None:
    device = client(fleet)
    fleet.publish(bundle(1))
    device.update()
    file, _ = served(fleet, fleet.publish(bundle(2)).release, name)
    right = file.read_bytes()
    file.write_bytes(right[:100] + bytes([right[100] ^ 1]) + right[101:])
    with serving(fleet.folder / "channels" / "canary") as server:
        device.settings["source"] = server.url if place == "http" else device.settings["source"]
        assert "its sha256 isn't the one that the channel's keys signed" in device.update(1, env=without_proxies())
        assert (device.current / "tflite").read_bytes() == flatbuffer(1)
        file.write_bytes(right)
        assert "updated to release 2" in device.update(env=without_proxies())


def test_a_tampered_index_is_never_read(fleet) -> None:
    device = client(fleet)
    fleet.publish(bundle(1))
    device.update()
    fleet.publish(bundle(2))
    for index in (fleet.folder / "channels/canary/targets").glob("*.releases.json"):
        index.write_bytes(index.read_bytes().replace(b'"number": 2', b'"number": 9'))
    assert "isn't what the channel's keys signed" in device.update(1) and device.status().release == 1


@pytest.mark.parametrize("what", ["timestamp", "releases", "model"])
def test_endless_data_is_cut_off(fleet, what) -> None:
    release = fleet.publish(bundle(1)).release
    _, model = served(fleet, release, "tflite")

    def endless(path: str, content: bytes):
        if {"timestamp": path == "/metadata/timestamp.json", "releases": path.endswith("releases.json"), "model": path == model}[what]:
            return (b"x" * 65536 for _ in range(10_000))
        return None

    with serving(fleet.folder / "channels" / "canary") as server:
        server.body = endless
        device = client(fleet, source=server.url)
        device.update(1, env=without_proxies())
    assert max(max(lengths) for lengths in server.served.values()) < 50_000_000
    assert sum(file.stat().st_size for file in device.state.rglob("*") if file.is_file()) < 100_000


def test_a_server_that_fails_is_told_and_what_came_before_stays(fleet) -> None:
    _, last = served(fleet, fleet.publish(large(1)).release, "tflite")
    with serving(fleet.folder / "channels" / "canary") as server:
        device = client(fleet, source=server.url)
        server.answer = lambda asked: 503 if asked == last else None
        assert "HTTP status 503" in device.update(1, env=without_proxies())
        server.answer = lambda asked: None
        updated_over_http(device)
    assert all(len(lengths) == 1 for path, lengths in server.served.items() if "bundles" in path) and last in server.served


@pytest.mark.parametrize(("setting", "text"), [("_GRACE_SECONDS", "slower than 1024 bytes per second"), ("SILENCE_SECONDS", "timed out")])
def test_a_server_that_drips_or_falls_silent_is_left(fleet, setting, text) -> None:
    _, path = served(fleet, fleet.publish(large(1)).release)
    ended = threading.Event()

    def slow(asked: str, content: bytes):
        pause = 0.01 if setting == "_GRACE_SECONDS" else 60
        return itertools.takewhile(lambda _: not ended.wait(pause), itertools.repeat(b"x")) if asked == path else None

    with serving(fleet.folder / "channels" / "canary") as server:
        server.body = slow
        device = client(fleet, source=server.url)
        code = (
            f"import sys; from tfx_edge.device import fetch; fetch.{setting} = 0.3; "
            f"from tfx_edge.device.__main__ import main; sys.exit(main([{device.command()[-1]!r}]))"
        )
        done = subprocess.run([device_python(), "-c", code], capture_output=True, text=True, cwd="/", env=without_proxies())
        ended.set()
    assert done.returncode == 1 and text in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_proxy_of_the_environment_is_used(fleet) -> None:
    fleet.publish(bundle(1))
    with serving(fleet.folder / "channels" / "canary") as server:
        device = client(fleet, source="http://models.invalid")
        assert "updated to release 1" in device.update(env={**without_proxies(), "http_proxy": server.url})


def test_what_another_version_has_is_not_downloaded(fleet) -> None:
    with serving(fleet.folder / "channels" / "canary") as server:
        device = client(fleet, source=server.url)
        fleet.publish(large(1))
        updated_over_http(device)
        server.served.clear()
        release = fleet.publish(large(2)).release
        assert "updated to release 2" in device.update(env=without_proxies())
        assert served(fleet, release)[1] not in server.served
    old, new = ((device.state / "versions").glob(f"{number}-*/edge/ballast.bin") for number in (1, 2))
    assert next(old).stat().st_ino != next(new).stat().st_ino


def test_special_files_in_a_folder_are_no_source(fleet) -> None:
    file, _ = served(fleet, fleet.publish(bundle(1)).release, "tflite")
    file.unlink()
    os.mkfifo(file)
    assert "not a file" in client(fleet).update(1, timeout=60)

"""What isn't as the channel's keys signed it is refused when the channel is opened, and named."""

import json
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from release_channels import Fleet, plain_bundle
from tuf.api.metadata import Metadata, TargetFile

from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.signing import sign
from tfx_edge.release.status import status


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path).create("canary", "beta")
    for seed in (1, 2):
        fleet.publish(plain_bundle(seed))
    fleet.publish(plain_bundle(3), "beta")
    return fleet


def only(fleet: Fleet, pattern: str) -> Path:
    """The newest file of a pattern."""
    return sorted((fleet.folder / "channels" / "canary").rglob(pattern))[-1]


def tampered(content: bytes) -> bytes:
    document = json.loads(content)
    document["signed"]["expires"] = "2039-01-01T00:00:00Z"
    return json.dumps(document).encode()


METADATA = ("1.root.json", "3.targets.json", "3.snapshot.json", "timestamp.json")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "changed": tampered,
    "without signatures": lambda content: json.dumps(json.loads(content) | {"signatures": []}).encode(),
    "cut off": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "no metadata": lambda content: b'{"signed": {"_type": "timestamp"}}',
    "nested": lambda content: b"[" * 100_000,
}


@pytest.mark.parametrize("name", METADATA)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_metadata_are_refused_and_named(fleet: Fleet, name: str, damage: str) -> None:
    file = only(fleet, name)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.raises(ChannelError) as error:
        fleet.open()
    assert name in str(error.value) and len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", METADATA[:-1])
def test_missing_metadata_are_named(fleet: Fleet, name: str) -> None:
    only(fleet, name).unlink()
    with pytest.raises(ChannelError, match=rf"{name}: missing; the channel is damaged, restore it from a copy"):
        fleet.open()


@pytest.mark.parametrize("name", METADATA)
def test_another_channels_metadata_are_refused(fleet: Fleet, name: str) -> None:
    newest = sorted((fleet.folder / "channels" / "beta" / "metadata").glob(f"*{name.partition('.')[2] if name[0].isdigit() else name}"))[-1]
    only(fleet, name).write_bytes(newest.read_bytes())
    with pytest.raises(ChannelError, match="isn't what the channel's keys signed|it is version 2; expected 3"):
        fleet.open()


def test_one_roles_metadata_arent_anothers(fleet: Fleet) -> None:
    only(fleet, "timestamp.json").write_bytes(only(fleet, "3.snapshot.json").read_bytes())
    with pytest.raises(ChannelError, match=r"timestamp\.json: it is metadata of snapshot; expected timestamp"):
        fleet.open()


def test_an_old_snapshot_or_targets_under_the_new_number_is_refused(fleet: Fleet) -> None:
    for role in ("snapshot", "targets"):
        file = only(fleet, f"3.{role}.json")
        new = file.read_bytes()
        file.write_bytes(only(fleet, f"2.{role}.json").read_bytes())
        with pytest.raises(ChannelError, match=rf"3\.{role}\.json: it is version 2; expected 3"):
            fleet.open()
        file.write_bytes(new)


@pytest.mark.parametrize("document", ["releases", "policy", "log"])
def test_a_changed_document_is_refused(fleet: Fleet, document: str) -> None:
    channel = fleet.open()
    digest = channel.targets.signed.targets[f"{document}.json"].hashes["sha256"]
    file = only(fleet, f"{digest}.{document}.json")
    for content in (file.read_bytes() + b" ", file.read_bytes().replace(b'"', b"'", 1), b""):
        file.write_bytes(content)
        with pytest.raises(ChannelError, match=rf"{document}\.json: .*it isn't what was signed"):
            fleet.open()


@pytest.mark.parametrize("path", ["tflite", "edge/manifest.json", "edge/golden.npz"])
def test_a_changed_or_missing_file_of_a_bundle_opens_and_doesnt_verify(fleet: Fleet, path: str) -> None:
    file = only(fleet, f"{plain_bundle(2).digest}/**/*.{path.rpartition('/')[2]}")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"!")
    channel = fleet.open()
    with pytest.raises(ChannelError, match="it isn't what was signed"):
        verify_files(channel)
    with pytest.raises(ChannelError, match="it isn't what was signed"):
        status(fleet.storage, "canary", fleet.now)
    file.unlink()
    with pytest.raises(ChannelError, match="missing; the channel is damaged"):
        verify_files(channel)


def test_of_a_file_that_is_far_too_long_no_more_is_read_than_was_signed(fleet: Fleet) -> None:
    with only(fleet, f"{plain_bundle(2).digest}/*.tflite").open("ab") as stream:
        stream.truncate(50_000_000)  # sparse
    channel = fleet.open()
    tracemalloc.start()
    try:
        with pytest.raises(ChannelError, match="it isn't what was signed"):
            verify_files(channel)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_a_target_without_a_sha256_is_refused(fleet: Fleet) -> None:
    channel = fleet.open()
    channel.targets.signed.targets["policy.json"] = TargetFile(1, {"sha512": "0" * 128}, "policy.json")
    signed = sign(channel.targets.signed, channel.root.signed, fleet.keyring)
    fleet.storage.write("canary/metadata/3.targets.json", signed.to_bytes())
    with pytest.raises(ChannelError, match=r"has no policy\.json, or not by its sha256"):
        fleet.open()


def test_a_snapshot_without_targets_is_refused(fleet: Fleet) -> None:
    channel = fleet.open()
    channel.snapshot.signed.meta.clear()
    fleet.storage.write("canary/metadata/3.snapshot.json", sign(channel.snapshot.signed, channel.root.signed, fleet.keyring).to_bytes())
    with pytest.raises(ChannelError, match="the snapshot names no targets"):
        fleet.open()


def test_a_folder_without_a_channel_says_how_to_make_one(fleet: Fleet) -> None:
    with pytest.raises(ChannelError, match=r"stable: no channel; make it with `tfx-edge channel init`"):
        open_channel(fleet.storage, "stable")


def test_what_is_expired_opens_and_is_named(fleet: Fleet) -> None:
    channel = fleet.open()
    found = [channel.expired(fleet.now + timedelta(days=days)) for days in (0, 4, 8, 91, 366)]
    assert found == [
        (),
        ("timestamp",),
        ("snapshot", "timestamp"),
        ("targets", "snapshot", "timestamp"),
        ("root", "targets", "snapshot", "timestamp"),
    ]


def test_a_channel_reads_what_tuf_signed_and_nothing_else(fleet: Fleet) -> None:
    channel = fleet.open()
    for path in ("nothing", "../beta/metadata/timestamp.json", "bundles"):
        with pytest.raises(ChannelError, match="has no"):
            channel.read(path)
    timestamp: Metadata = Metadata.from_bytes(only(fleet, "timestamp.json").read_bytes())
    assert timestamp.signed.snapshot_meta.version == channel.snapshot.signed.version == 3

"""What attackers do to a channel, as TUF's specification names them, seen by the reference client: it refuses, and its model goes on running.

The attacker has the server, or the way to it: whatever lies in the channel's folder. Some have stolen keys besides.
"""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from device_client import Client, client, serving, without_proxies
from release_channels import Fleet, bundle, flatbuffer
from tuf.api.metadata import Metadata, Root, Signed

from tfx_edge.device.bundle import damage
from tfx_edge.release.channel import metadata_path
from tfx_edge.release.keys import generate_key, key_of
from tfx_edge.release.publish import publish
from tfx_edge.release.rekey import changed_keys
from tfx_edge.release.root import draft_next_root, sign_root
from tfx_edge.release.rotate import apply_root
from tfx_edge.release.signing import add_signatures, sign
from tfx_edge.schemas import Keyring, Release
from tfx_edge.schemas.keyring import KeyReference

ROLES = ("timestamp", "snapshot", "targets")
BUNDLE = bundle(2).digest


@dataclass
class Scene:
    """A channel that offers release 2, and a device that runs release 1.

    Attributes:
        fleet: has the channels canary and beta, and their keys.
        first: the channel canary as it was when it offered release 1.
        device: follows canary.
    """

    fleet: Fleet
    first: Path
    device: Client

    @property
    def channel(self) -> Path:
        return self.fleet.folder / "channels" / "canary"

    def file(self, pattern: str) -> Path:
        [found] = self.channel.rglob(pattern)
        return found

    def refused(self, text: str, runs: int = 1, updated: str = "release 1 runs", **options: object) -> None:
        """The device says so in one line, and its model is still a verified one."""
        said = self.device.update(1, **options)
        assert text in said and updated in said, said
        self.runs(runs)

    def runs(self, seed: int) -> None:
        assert (self.device.current / "tflite").read_bytes() == flatbuffer(seed)
        release = Release.from_json((self.device.current / ".release.json").read_bytes())
        assert damage(self.device.current, release) is None

    def updates(self, seed: int = 2, **options: object) -> None:
        assert "updated to release" in self.device.update(**options)
        self.runs(seed)

    def serve(self, channel: Path) -> None:
        """Puts another state of the channel in the place of the one that is there; reports stay."""
        shutil.rmtree(self.channel)
        shutil.copytree(channel, self.channel)

    def put(self, signed: Signed, keyring: Keyring | None = None) -> None:
        """Signs metadata with a role's keys, stolen ones, and puts them where devices read them."""
        role = signed.type
        made = sign(signed, self.fleet.open().root.signed, keyring or self.fleet.keyring)
        version = None if role == "timestamp" else signed.version
        (self.fleet.folder / "channels" / metadata_path("canary", role, version)).write_bytes(made.to_bytes())

    def rotate(self, roles: Sequence[str]) -> Keyring:
        """New keys for roles; the keyring has the new ones besides the old."""
        fleet, keyring = self.fleet, self.fleet.keyring
        root, keys = fleet.open().root, {}
        for role in roles:
            file = fleet.folder / "keys" / f"new-{role}.pem"
            public = generate_key(file)
            keys[role] = changed_keys(root.signed, role, add=[public], revoke=root.signed.roles[role].keyids)
            reference = KeyReference(uri=f"file2:{file}", key_id=key_of(public).keyid)
            keyring = keyring.model_copy(update={role: (*getattr(keyring, role), reference)})
        draft = draft_next_root(root, keys, now=fleet.now, days=365)
        sign_root(draft, keyring, root)
        apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now)
        return keyring


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played")
    fleet = (
        Fleet(folder, now=datetime.now(timezone.utc).replace(microsecond=0)).create("canary", root_keys=3, root_threshold=2).create("beta")
    )
    fleet.publish(bundle(3), "beta")
    fleet.publish(bundle(1))
    client(fleet).update()
    shutil.copytree(folder / "channels" / "canary", folder / "first")
    fleet.publish(bundle(2))
    return folder


@pytest.fixture
def scene(played: Path, tmp_path: Path) -> Scene:
    shutil.copytree(played, tmp_path / "fleet", symlinks=True)
    fleet = Fleet(tmp_path / "fleet", now=datetime.now(timezone.utc).replace(microsecond=0))
    return Scene(fleet, fleet.folder / "first", client(fleet))


def test_without_an_attack_the_device_updates(scene: Scene) -> None:
    scene.updates()


@pytest.mark.parametrize("path", ["*.tflite", "edge/*.manifest.json", "edge/*.golden.npz"])
def test_a_tampered_file_of_a_bundle(scene: Scene, path: str) -> None:
    file = scene.file(f"{BUNDLE}/{path}")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    scene.refused("its sha256 isn't the one that the channel's keys signed", updated="")
    file.write_bytes(content)
    scene.updates()


def test_one_bundles_model_in_the_place_of_anothers(scene: Scene) -> None:
    scene.file(f"{BUNDLE}/*.tflite").write_bytes(scene.file(f"{bundle(1).digest}/*.tflite").read_bytes())
    scene.refused("its sha256 isn't the one that the channel's keys signed", updated="")


def changed(content: bytes) -> bytes:
    document = json.loads(content)
    document["signed"]["expires"] = "2039-01-01T00:00:00Z"
    return json.dumps(document).encode()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("tamper", "text"),
    [
        (changed, "not signed by the channel's keys"),
        (lambda content: json.dumps(json.loads(content) | {"signatures": []}).encode(), "not signed by the channel's keys"),
        (lambda content: content[:200], "Failed to deserialize JSON"),
    ],
)
def test_tampered_metadata(scene: Scene, role: str, tamper: Callable[[bytes], bytes], text: str) -> None:
    file = scene.file("timestamp.json" if role == "timestamp" else f"3.{role}.json")
    content = file.read_bytes()
    file.write_bytes(tamper(content))
    scene.refused(text)
    file.write_bytes(content)
    assert scene.device.status().release == 1


def test_a_tampered_index(scene: Scene) -> None:
    file = scene.file(f"{scene.fleet.open().targets.signed.targets['releases.json'].hashes['sha256']}.releases.json")
    file.write_bytes(file.read_bytes().replace(b'"share": 1.0', b'"share": 0.5'))
    scene.refused("isn't what the channel's keys signed")


def with_own_keys(scene: Scene, held: int) -> Metadata[Root]:
    """The attacker's root, signed with an own key and some of the channel's."""
    root = scene.fleet.open().root
    file = scene.fleet.folder / "thief.pem"
    public = generate_key(file)
    own = KeyReference(uri=f"file2:{file}", key_id=key_of(public).keyid)
    keys = {
        role: changed_keys(root.signed, role, add=[public], revoke=root.signed.roles[role].keyids, threshold=1) for role in ("root", *ROLES)
    }
    draft = draft_next_root(root, keys, now=scene.fleet.now, days=365)
    sign_root(draft, Keyring(root=(own, *scene.fleet.keyring.root[:held])), root)
    return draft


@pytest.mark.parametrize("held", [0, 1])
def test_a_root_of_the_attackers_with_fewer_stolen_root_keys_than_the_threshold(scene: Scene, held: int) -> None:
    (scene.channel / "metadata" / "2.root.json").write_bytes(with_own_keys(scene, held).to_bytes())
    scene.refused("not signed by the channel's keys")


def test_with_as_many_stolen_root_keys_as_the_threshold_the_channel_would_be_lost(scene: Scene) -> None:
    """That the test above fails for the threshold's sake."""
    (scene.channel / "metadata" / "2.root.json").write_bytes(with_own_keys(scene, 2).to_bytes())
    scene.refused("timestamp was signed by 0/1 keys")
    assert list((scene.device.state / "metadata" / "root_history").glob("2.root.json"))


def test_garbage_in_the_place_of_the_next_root(scene: Scene) -> None:
    (scene.channel / "metadata" / "2.root.json").write_bytes(b"garbage")
    scene.refused("Failed to deserialize JSON")
    (scene.channel / "metadata" / "2.root.json").unlink()
    scene.updates()


def test_replay_of_the_whole_channel_as_it_was(scene: Scene) -> None:
    scene.updates()
    scene.serve(scene.first)
    scene.refused("older than what this device has seen", runs=2, updated="release 2 runs")


@pytest.mark.parametrize("role", ["snapshot", "targets"])
def test_replay_of_old_metadata_under_the_new_number(scene: Scene, role: str) -> None:
    """Mix and match: a new timestamp, or a new snapshot, with what was signed for an older one."""
    shutil.copy(scene.channel / "metadata" / f"2.{role}.json", scene.channel / "metadata" / f"3.{role}.json")
    scene.refused("older than what this device has seen")


def test_replay_of_an_old_snapshot_with_a_stolen_timestamp_key(scene: Scene) -> None:
    scene.updates()
    timestamp = scene.fleet.open().timestamp.signed
    timestamp.version, timestamp.snapshot_meta.version = 9, 2
    scene.put(timestamp)
    scene.refused("older than what this device has seen", runs=2, updated="release 2 runs")


def test_replay_of_old_targets_with_stolen_timestamp_and_snapshot_keys(scene: Scene) -> None:
    scene.updates()
    channel = scene.fleet.open()
    timestamp, snapshot = channel.timestamp.signed, channel.snapshot.signed
    timestamp.version = timestamp.snapshot_meta.version = snapshot.version = 9
    snapshot.meta["targets.json"].version = 2
    shutil.copy(scene.first / "metadata" / "2.targets.json", scene.channel / "metadata" / "2.targets.json")
    scene.put(snapshot)
    scene.put(timestamp)
    scene.refused("older than what this device has seen", runs=2, updated="release 2 runs")


def test_replay_of_what_a_revoked_key_signed(scene: Scene) -> None:
    before = scene.fleet.folder / "before"
    shutil.copytree(scene.channel, before)
    scene.rotate(("timestamp", "snapshot", "targets"))
    scene.updates()
    shutil.copytree(before, scene.channel, dirs_exist_ok=True)  # the newer root is on the device already
    (scene.channel / "metadata" / "2.root.json").unlink()
    scene.refused("not signed by the channel's keys", runs=2, updated="release 2 runs")


def test_replay_of_an_old_root_in_the_place_of_the_next_one(scene: Scene) -> None:
    shutil.copy(scene.channel / "metadata" / "1.root.json", scene.channel / "metadata" / "2.root.json")
    scene.refused("older than what this device has seen")


@pytest.mark.parametrize("role", ["root", *ROLES])
def test_a_freeze(scene: Scene, role: str) -> None:
    """Genuine metadata, but of a past that the attacker doesn't let the device leave."""
    channel = scene.fleet.open()
    signed = getattr(channel, role).signed
    signed.expires = scene.fleet.now - timedelta(minutes=1)
    if role == "root":
        signed.version = 2
    scene.put(signed)
    scene.refused("the channel looks frozen, or this device's clock is wrong")


@pytest.mark.parametrize("stolen", [("timestamp",), ("timestamp", "snapshot"), ROLES])
def test_recovery_from_versions_that_thieves_ran_up(scene: Scene, stolen: tuple[str, ...]) -> None:
    genuine = scene.fleet.folder / "genuine"
    shutil.copytree(scene.channel, genuine)
    channel, far = scene.fleet.open(), 2**31 - 1
    timestamp, snapshot, targets = channel.timestamp.signed, channel.snapshot.signed, channel.targets.signed
    timestamp.version = far
    if "targets" in stolen:
        targets.version = snapshot.meta["targets.json"].version = far
        scene.put(targets)
    if "snapshot" in stolen:
        snapshot.version = timestamp.snapshot_meta.version = far
        scene.put(snapshot)
    scene.put(timestamp)
    scene.updates()  # what the thief signed offers the same release still
    scene.serve(genuine)
    scene.refused("older than what this device has seen", runs=2, updated="release 2 runs")
    keyring = scene.rotate(stolen)
    publish(scene.fleet.storage, "canary", bundle(4), keyring, now=scene.fleet.now)
    scene.updates(4)


def test_recovery_where_the_thief_changed_the_channel_itself(scene: Scene) -> None:
    channel, far = scene.fleet.open(), 2**31 - 1
    timestamp, snapshot = channel.timestamp.signed, channel.snapshot.signed
    timestamp.version = timestamp.snapshot_meta.version = snapshot.version = far
    scene.put(snapshot)
    scene.put(timestamp)
    scene.updates()
    keyring = scene.rotate(("timestamp", "snapshot"))
    publish(scene.fleet.storage, "canary", bundle(4), keyring, now=scene.fleet.now)
    scene.updates(4)


def test_a_revoked_key_signs_nothing_that_devices_take(scene: Scene) -> None:
    stolen = scene.fleet.keyring
    keyring = scene.rotate(("timestamp",))
    scene.updates()
    timestamp = scene.fleet.open().timestamp.signed
    timestamp.version += 5
    forged: Metadata = Metadata(timestamp)
    first: Metadata[Root] = Metadata.from_bytes((scene.channel / "metadata" / "1.root.json").read_bytes())
    assert add_signatures(forged, stolen, first.signed) == 1
    genuine = scene.file("timestamp.json").read_bytes()
    scene.file("timestamp.json").write_bytes(forged.to_bytes())
    scene.refused("not signed by the channel's keys", runs=2, updated="release 2 runs")
    scene.file("timestamp.json").write_bytes(genuine)
    publish(scene.fleet.storage, "canary", bundle(4), keyring, now=scene.fleet.now)
    scene.updates(4)


def test_a_lost_root_key_with_a_threshold(scene: Scene) -> None:
    """Two of three keys give the channel a new third one, and later rotate without the lost one."""
    (scene.fleet.folder / "keys" / "canary-root-1.pem").unlink()
    root = scene.fleet.open().root
    lost = scene.fleet.keyring.root[0]
    file = scene.fleet.folder / "keys" / "new.pem"
    public = generate_key(file)
    keyring = scene.fleet.keyring.model_copy(update={"root": (*scene.fleet.keyring.root[1:], KeyReference(uri=f"file2:{file}"))})
    keys = changed_keys(root.signed, "root", add=[public], revoke=[str(lost.key_id)])
    draft = draft_next_root(root, {"root": keys}, now=scene.fleet.now, days=365)
    sign_root(draft, keyring, root)
    apply_root(scene.fleet.storage, "canary", draft, keyring, now=scene.fleet.now)
    scene.updates()


@pytest.mark.parametrize("what", ["metadata", "metadata/timestamp.json"])
def test_another_channels_metadata(scene: Scene, what: str) -> None:
    other, here = scene.fleet.folder / "channels" / "beta" / what, scene.channel / what
    if other.is_dir():
        shutil.rmtree(here)
        shutil.copytree(other, here)
    else:
        shutil.copy(other, here)
    scene.refused("not signed by the channel's keys")


def test_another_channels_index_even_with_a_stolen_targets_key(scene: Scene) -> None:
    """The keys of the one channel vouch for what the other one offers: the index names its channel."""
    channel = scene.fleet.open()
    targets = channel.targets.signed
    content = scene.fleet.open("beta").read("releases.json")
    other = scene.fleet.open("beta").targets.signed.targets["releases.json"]
    targets.targets["releases.json"] = other
    (scene.channel / "targets" / f"{other.hashes['sha256']}.releases.json").write_bytes(content)
    scene.put(targets)
    scene.refused("it is the channel 'beta', this device follows 'canary'")


def endless(path: str, content: bytes) -> Iterator[bytes]:
    """It ends after all, at 50 MB, so that a broken client doesn't fill the disk of whoever tests it."""
    return itertools.chain([content], itertools.repeat(b" " * 2**16, 800))


@pytest.mark.parametrize("name", ["2.root.json", "timestamp.json", "3.snapshot.json", "3.targets.json", "releases.json", ".tflite"])
def test_endless_data(scene: Scene, name: str) -> None:
    """A server that never stops, in the place of each file: what the device takes has a bound, for metadata TUF's 5 MB at most."""
    if name == "2.root.json":
        (scene.channel / "metadata" / name).write_bytes(b"{")
    with serving(scene.channel) as server:
        server.body = lambda path, content: endless(path, content) if path.endswith(name) else None
        scene.device.settings["source"] = server.url
        limit = "longer than the" if name == ".tflite" else "exceeding the maximum allowed length"
        scene.refused(limit, updated="", env=without_proxies())
        [(path, sent)] = [(path, sent) for path, sent in server.served.items() if path.endswith(name)]
        # Of what is sent some is still in the sockets' buffers; those of loopback hold a few MB.
        assert sum(sent) < 20e6, f"{path}: {sent}"
        downloads = [file.stat().st_size for file in scene.device.state.rglob("*") if file.is_file() and not file.is_symlink()]
        assert max(downloads) < 1e6


@pytest.mark.parametrize("name", ["timestamp.json", "3.snapshot.json", "3.targets.json", "*.releases.json", f"{BUNDLE}/*.tflite"])
def test_a_file_that_is_far_too_long(scene: Scene, name: str) -> None:
    for file in scene.channel.rglob(name):
        with file.open("ab") as stream:
            stream.truncate(50_000_000)  # sparse
    scene.refused("longer than the" if "tflite" in name else "exceeding the maximum allowed length", updated="")
    assert max(file.stat().st_size for file in scene.device.state.rglob("*") if file.is_file()) < 1e6


def test_a_download_that_breaks_off_and_a_file_that_was_cut(scene: Scene) -> None:
    file = scene.file(f"{BUNDLE}/*.tflite")
    content = file.read_bytes()
    with serving(scene.channel) as server:
        scene.device.settings["source"] = server.url
        server.break_after["/" + str(file.relative_to(scene.channel))] = 100
        server.answer = lambda path: 503 if path.endswith(".tflite") and path in server.served else None
        scene.refused("100 of", updated="the rest comes with the next update", env=without_proxies())
    scene.device.settings["source"] = str(scene.channel)
    file.write_bytes(content[:-50])
    scene.refused("ends after", updated="")
    file.write_bytes(content)
    scene.updates()


def test_no_channel_at_all(scene: Scene) -> None:
    scene.channel.rename(scene.fleet.folder / "away")
    scene.refused("no such file")
    (scene.fleet.folder / "away").rename(scene.channel)
    scene.updates()

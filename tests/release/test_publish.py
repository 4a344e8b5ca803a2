"""Publishing to a channel: what devices are offered then, and that nothing changes where nothing is new."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import release_channels
from release_channels import Fleet, bundle, contents, exported, plain_bundle

from tfx_edge.release.bundle import read_bundle
from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelBusyError, ChannelError
from tfx_edge.schemas import ChannelPolicy, Cohort, ConfigError, DeviceInfo, Provenance, RolloutStep, RunInfo

ANY = DeviceInfo(device_id="one", runtime="2.21.0")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create("canary")


def test_a_published_bundle_is_what_a_device_is_offered_byte_for_byte(fleet: Fleet, tmp_path: Path) -> None:
    made = read_bundle(exported(tmp_path / "model", bundle(1)))
    fleet.publish(made)
    channel = fleet.open()
    verify_files(channel)
    release = channel.index.offered(ANY)
    assert release is not None and release.number == 1 and release.bundle == made.digest
    assert {file.path: channel.read(release.target_path(file)) for file in release.files} == made.files


def test_the_same_bundle_again_changes_no_byte_whatever_run_made_it(fleet: Fleet) -> None:
    first = fleet.publish(bundle(1), provenance=Provenance(run=RunInfo(run_id="monday")))
    before = contents(fleet.folder)
    fleet.later(days=1)
    again = fleet.publish(bundle(1, run=RunInfo(run_id="tuesday")).with_provenance(Provenance(run=RunInfo(run_id="tuesday"))))
    assert first.changed and not again.changed and again.release == first.release
    assert contents(fleet.folder) == before


def test_another_model_or_another_manifest_is_another_bundle() -> None:
    digests = {
        bundle(1).digest,
        bundle(2).digest,
        bundle(1, description="z of x").digest,
        bundle(1).with_file("edge/model.cc", b"x").digest,
    }
    assert len(digests) == 4


def test_a_newer_release_takes_the_place_of_the_older_one(fleet: Fleet) -> None:
    fleet.publish(bundle(1))
    fleet.publish(bundle(2))
    assert [release.number for release in fleet.open().index.releases] == [2]


def test_the_older_release_stays_for_devices_that_the_newer_one_leaves_out(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary", policies={"canary": ChannelPolicy(steps=(RolloutStep(share=0.5), RolloutStep(share=1)))})
    fleet.publish(bundle(1))
    fleet.publish(bundle(2))
    fleet.publish(bundle(3), cohort=Cohort(regions=("eu",)))
    assert [release.number for release in fleet.open().index.releases] == [3, 2, 1]
    old_runtime = bundle(4, minimum_runtime="2.16.1")
    fleet = Fleet(tmp_path / "other").create("canary")
    fleet.publish(bundle(1))
    fleet.publish(old_runtime)
    offered = fleet.open().index
    assert [offered.offered(ANY.model_copy(update={"runtime": r})).number for r in ("2.9.0", "2.21.0")] == [1, 2]


HELD = """
import sys
from pathlib import Path
from release_channels import Fleet, plain_bundle
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner
from tfx_edge.schemas.keyring import KeyReference
from tfx_edge.release.publish import publish

class HeldSigner(CryptoSigner):
    @classmethod
    def from_priv_key_uri(cls, priv_key_uri, public_key, secrets_handler=None):
        print("signing", flush=True)
        sys.stdin.read()
        return CryptoSigner.from_priv_key_uri("file2:" + priv_key_uri.partition(":")[2], public_key)

SIGNER_FOR_URI_SCHEME["held"] = HeldSigner
fleet = Fleet(Path(sys.argv[1]))
[key] = fleet.keyring.targets
keyring = fleet.keyring.model_copy(update={"targets": (KeyReference(uri=key.uri.replace("file2:", "held:")),)})
publish(fleet.storage, "canary", plain_bundle(1), keyring, now=fleet.now)
"""


def test_of_two_promoters_at_once_one_wins_and_the_other_is_told_who_it_is(fleet: Fleet) -> None:
    """The first one is held in the middle of it, while it signs."""
    command = [sys.executable, "-c", HELD, str(fleet.folder)]
    path = os.pathsep.join([str(Path(release_channels.__file__).parent), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}, cwd="/"
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"signing\n"
        before = contents(fleet.folder)
        with pytest.raises(ChannelBusyError, match=rf"canary: process {other.pid} on .* is changing it; try again when it has ended"):
            fleet.publish(plain_bundle(2))
        assert contents(fleet.folder) == before
        other.stdin.close()
        other.wait()
    assert [one.bundle for one in fleet.open().index.releases] == [plain_bundle(1).digest]
    assert fleet.publish(plain_bundle(2)).release.number == 2, "the lock ends with its process"
    verify_files(fleet.open())


def test_a_manifest_of_another_model_is_refused(tmp_path: Path) -> None:
    folder = exported(tmp_path / "model", bundle(1))
    (folder / "Format-Serving" / "tflite").write_bytes(bundle(2).files["tflite"])
    with pytest.raises(ChannelError, match="the manifest is of a flatbuffer with sha256"):
        read_bundle(folder)


def test_files_of_bundles_that_nothing_could_go_back_to_are_removed_a_change_later(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary", policies={"canary": ChannelPolicy(keep_bundles=1)})
    made = [fleet.publish(bundle(seed)).release for seed in (1, 2, 3, 4)]
    there = {path.split("/")[3] for path in fleet.storage.list("canary/targets/bundles")}
    assert there == {release.bundle for release in made[1:]}, (
        "the last two kept by the policy, one more for devices in the middle of reading"
    )
    verify_files(fleet.open())


def test_a_bundle_that_the_channel_has_already_is_offered_again_under_a_new_number(fleet: Fleet) -> None:
    """Not taken back, but followed by another one: who goes back to it on purpose may."""
    for seed in (1, 2, 1):
        assert fleet.publish(plain_bundle(seed)).changed
    [release] = fleet.open().index.releases
    assert (release.number, release.bundle) == (3, plain_bundle(1).digest)
    verify_files(fleet.open())


def test_a_channel_that_doesnt_verify_is_not_built_upon(fleet: Fleet) -> None:
    fleet.publish(plain_bundle(1))
    timestamp = fleet.folder / "channels" / "canary" / "metadata" / "timestamp.json"
    timestamp.write_bytes(timestamp.read_bytes().replace(b"2030-01-04", b"2039-01-04"))
    before = contents(fleet.folder)
    with pytest.raises(ChannelError, match=r"timestamp\.json: .*it isn't what the channel's keys signed"):
        fleet.publish(plain_bundle(2))
    assert contents(fleet.folder) == before


@pytest.mark.parametrize("path", ["edge/.hidden", "../x", "edge/../../x", "/etc/passwd", "a b", "edge//x", ""])
def test_a_bundle_with_a_file_outside_of_itself_is_refused(fleet: Fleet, path: str) -> None:
    before = contents(fleet.folder)
    with pytest.raises(ConfigError, match=r"BundleFile\.path"):
        fleet.publish(plain_bundle(1).with_file(path, b""))
    assert contents(fleet.folder) == before

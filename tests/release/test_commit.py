"""One step from the old state to the new one, seen in the order of the writes, and with a disk that fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from release_channels import Fleet, contents, plain_bundle

from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.commit import commit
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.publish import publish
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import ChannelPolicy, Cohort, LogEntry, RunInfo


@dataclass
class Recorded:
    """A folder that says what was done to it, in which removals can fail."""

    local: LocalStorage
    done: list[str] = field(default_factory=list)
    stuck: bool = False

    def read(self, path: str, at_most: int | None = None) -> bytes:
        return self.local.read(path, at_most)

    def write(self, path: str, content: bytes) -> None:
        self.done.append(path)
        self.local.write(path, content)

    def list(self, folder: str) -> tuple[str, ...]:
        return self.local.list(folder)

    def folders(self) -> tuple[str, ...]:
        return self.local.folders()

    def remove(self, path: str) -> None:
        if self.stuck:
            raise ChannelError(f"{path}: can't be removed")
        self.local.remove(path)

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        with self.local.lock(path):
            yield

    def describe(self, path: str) -> str:
        return self.local.describe(path)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path).create("canary")
    fleet.publish(plain_bundle(1))
    return fleet


def test_files_come_first_then_metadata_each_before_what_names_it_and_the_timestamp_last(fleet: Fleet) -> None:
    storage = Recorded(fleet.storage)
    publish(storage, "canary", plain_bundle(2), fleet.keyring, now=fleet.now)
    metadata = [f"canary/metadata/{name}.json" for name in ("3.targets", "3.snapshot", "timestamp")]
    assert storage.done[-3:] == metadata
    assert len(storage.done) == 9 and all(path.startswith("canary/targets/") for path in storage.done[:-3])


def test_a_change_that_is_made_is_no_error_where_old_files_cant_be_removed_and_they_go_with_the_next_one(fleet: Fleet) -> None:
    storage = Recorded(fleet.storage, stuck=True)
    for seed in (2, 3):
        assert publish(storage, "canary", plain_bundle(seed), fleet.keyring, now=fleet.now).changed
    old = {path for path in fleet.storage.list("canary/metadata") if path.endswith(("1.targets.json", "1.snapshot.json"))}
    assert len(old) == 2
    storage.stuck = False
    publish(storage, "canary", plain_bundle(4), fleet.keyring, now=fleet.now)
    assert not old & set(fleet.storage.list("canary/metadata"))
    verify_files(fleet.open())


def test_the_state_before_stays_readable_for_devices_in_the_middle_of_it(fleet: Fleet) -> None:
    before = fleet.open()
    fleet.publish(plain_bundle(2))
    verify_files(before)
    for version, role in ((before.snapshot.signed.version, "snapshot"), (before.targets.signed.version, "targets")):
        assert f"canary/metadata/{version}.{role}.json" in fleet.storage.list("canary")


def test_old_metadata_and_documents_dont_pile_up(fleet: Fleet) -> None:
    for seed in range(2, 8):
        fleet.publish(plain_bundle(seed))
    names = [path.rpartition("/")[2] for path in fleet.storage.list("canary")]
    assert sum(name.endswith(".snapshot.json") for name in names) == 2
    assert sum(name.endswith(".releases.json") for name in names) == 2
    assert sum(name.endswith(".root.json") for name in names) == 1


def test_a_release_with_files_that_the_channel_hasnt_is_never_signed(fleet: Fleet) -> None:
    channel, before = fleet.open(), contents(fleet.folder)
    [release] = channel.index.releases
    wrong = release.files[0].model_copy(update={"digest": "0" * 64})
    index = channel.index.model_copy(update={"releases": (release.model_copy(update={"files": (wrong, *release.files[1:])}),)})
    entry = LogEntry(time=fleet.now, action="publish", who="tester", key_id="")
    with pytest.raises(ChannelError, match=f"canary: release 1 names a {wrong.path} that isn't among the files that are signed"):
        commit(channel, fleet.keyring, [entry], now=fleet.now, index=index)
    assert contents(fleet.folder) == before


def test_the_same_bundle_of_two_runs_serves_two_cohorts(fleet: Fleet) -> None:
    """Their manifests differ in the run; the channel keeps the first one for both."""
    fleet.publish(plain_bundle(2, run=RunInfo(run_id="monday")), cohort=Cohort(regions=("eu",)))
    fleet.publish(plain_bundle(2, run=RunInfo(run_id="tuesday")), cohort=Cohort(regions=("us",)))
    verify_files(fleet.open())
    [us, eu, _] = fleet.open().index.releases
    assert us.files == eu.files and b"monday" in fleet.open().read(f"bundles/{us.bundle}/edge/manifest.json")


def test_a_file_that_a_failing_disk_changed_is_written_anew_when_its_content_comes_again(fleet: Fleet) -> None:
    fleet.publish(plain_bundle(2))
    [file] = (fleet.folder / "channels" / "canary" / "targets").rglob(f"bundles/{plain_bundle(1).digest}/*.tflite")
    file.write_bytes(b"damaged")
    with pytest.raises(ChannelError, match=r"\.tflite: .*it isn't what was signed"):
        verify_files(fleet.open())
    fleet.publish(plain_bundle(1))
    verify_files(fleet.open())


def test_a_lack_of_any_key_shows_before_the_first_write(fleet: Fleet) -> None:
    before = contents(fleet.folder)
    for role in ("targets", "snapshot", "timestamp"):
        with pytest.raises(ChannelError, match=rf"{role}: (the keyring has none of its keys|signed by 0 of the 1 keys)"):
            publish(fleet.storage, "canary", plain_bundle(2), fleet.keyring.model_copy(update={role: ()}), now=fleet.now)
        stranger = fleet.keyring.model_copy(update={role: tuple(one.model_copy(update={"key_id": None}) for one in fleet.keyring.fleet)})
        with pytest.raises(ChannelError, match=rf"{role}: (the keyring has none of its keys|signed by 0 of the 1 keys)"):
            publish(fleet.storage, "canary", plain_bundle(2), stranger, now=fleet.now)
    assert contents(fleet.folder) == before


def test_bundles_on_offer_are_kept_however_few_the_policy_keeps(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary", policies={"canary": ChannelPolicy(keep_bundles=1)})
    for seed in range(1, 6):
        fleet.publish(plain_bundle(seed), cohort=Cohort(regions=(f"region-{seed}",)))
    channel = open_channel(fleet.storage, "canary")
    verify_files(channel)
    assert len(channel.index.releases) == 5

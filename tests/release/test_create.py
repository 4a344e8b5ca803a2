"""New channels, with new keys or with a root that was signed elsewhere."""

import multiprocessing
from datetime import timedelta
from pathlib import Path

import pytest
from release_channels import START, Fleet, contents, plain_bundle

from tfx_edge.release.channel import channel_exists, verify_files
from tfx_edge.release.create import create_channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.names import channels_in
from tfx_edge.release.new_keys import create_with_new_keys
from tfx_edge.release.root import draft_next_root, sign_root
from tfx_edge.schemas import ChannelPolicy, ConfigError, Keyring, RolloutStep


def test_a_new_channel_verifies_offers_nothing_and_knows_its_rules_and_maker(tmp_path: Path) -> None:
    policy = ChannelPolicy(steps=(RolloutStep(share=0.5), RolloutStep(share=1)), promote_to="beta")
    create_with_new_keys(Fleet(tmp_path).storage, "canary", tmp_path / "keys" / "keyring.json", policy, who="ann", now=START)
    channel = Fleet(tmp_path).open()
    verify_files(channel)
    [entry] = channel.log.entries
    assert (channel.index.releases, channel.policy.promote_to, entry.action, entry.who) == ((), "beta", "init", "ann")
    assert entry.policy == channel.policy and entry.key_id in channel.root.signed.roles["targets"].keyids
    assert len(channel.policy.fleet_keys) == 1, "devices enrolled with the folder's key count"
    assert channel.expired(START) == () and channel.expired(START + timedelta(days=4)) == ("timestamp",)


def test_every_key_is_a_file_of_its_own_and_one_fleet_key_serves_all_channels(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary", root_keys=2, root_threshold=2).create("beta")
    online = [f"{name}-{role}.pem" for name in ("canary", "beta") for role in ("targets", "snapshot", "timestamp")]
    names = {"fleet.pem", "keyring.json", "canary-root-1.pem", "canary-root-2.pem", "beta-root.pem", *online}
    assert {path.name for path in (tmp_path / "keys").iterdir() if path.suffix != ".lock"} == names
    assert fleet.open("canary").policy.fleet_keys == fleet.open("beta").policy.fleet_keys
    assert fleet.open("canary").root.signed.roles["root"].threshold == 2
    assert len({key for name in ("canary", "beta") for key in fleet.open(name).root.signed.keys}) == 9
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0


def test_a_channel_that_is_there_is_never_made_again(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary")
    before = contents(tmp_path)
    with pytest.raises(ChannelError, match="canary: the channel is there already"):
        fleet.create("canary")
    with pytest.raises(ChannelError, match="canary: the channel is there already"):
        create_channel(fleet.storage, "canary", fleet.open().root, fleet.keyring, now=START)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", ".hidden", "-x", "ä"])
def test_a_name_that_is_no_folder_below_the_channels_makes_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="ReleaseIndex.channel"):
        Fleet(tmp_path).create(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("keys", ["channels", "channels/canary/keys", "channels/x/../keys"])
def test_keys_are_never_made_where_devices_read(tmp_path: Path, keys: str) -> None:
    (tmp_path / "channels" / "x").mkdir(parents=True)
    with pytest.raises(ChannelError, match="keys among the channels .*, which devices can read"):
        create_with_new_keys(Fleet(tmp_path).storage, "canary", tmp_path / keys / "keyring.json", now=START)
    assert not list(tmp_path.rglob("*.pem"))


def test_what_a_creation_left_that_was_cut_short_is_no_channel_and_its_keys_are_used(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary")
    keys = {path: path.read_bytes() for path in (tmp_path / "keys").glob("*.pem")}
    (tmp_path / "channels" / "canary" / "metadata" / "timestamp.json").unlink()
    assert not channel_exists(fleet.storage, "canary")
    with pytest.raises(ChannelError, match="no channel; make it with `tfx-edge channel init`"):
        fleet.open()
    fleet.create("canary").publish(plain_bundle(1))
    assert {path: path.read_bytes() for path in (tmp_path / "keys").glob("*.pem")} == keys


def test_a_channel_that_lost_its_timestamp_is_damaged_and_isnt_made_anew_over_what_is_left(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary")
    fleet.publish(plain_bundle(1))
    (tmp_path / "channels" / "canary" / "metadata" / "timestamp.json").unlink()
    before = contents(tmp_path)
    assert channels_in(fleet.storage) == ("canary",)
    with pytest.raises(ChannelError, match=r"timestamp\.json: missing; the channel is damaged, restore it from a copy"):
        fleet.open()
    with pytest.raises(ChannelError, match="canary: the channel is there already"):
        fleet.create("canary")
    assert contents(tmp_path) == before


def _create(folder: Path, name: str) -> None:
    while True:
        try:
            Fleet(folder).create(name)
            return
        except ChannelError as error:
            if "is changing it" not in str(error):
                raise


def test_channels_made_at_once_lose_no_key_of_the_keyring(tmp_path: Path) -> None:
    names = [f"channel-{number}" for number in range(4)]
    made = [multiprocessing.get_context("fork").Process(target=_create, args=(tmp_path, name)) for name in names]
    for process in made:
        process.start()
    for process in made:
        process.join()
    fleet = Fleet(tmp_path)
    assert [process.exitcode for process in made] == [0] * len(made)
    assert [fleet.publish(plain_bundle(1), name).release.number for name in names] == [1] * len(names)


def test_a_root_that_devices_couldnt_start_from_is_refused(tmp_path: Path) -> None:
    other = Fleet(tmp_path / "other").create("canary")
    first, fleet = other.open().root, Fleet(tmp_path)

    def refused(root, text: str, keyring: Keyring = other.keyring) -> None:
        sign_root(root, other.keyring)
        with pytest.raises(ChannelError, match=text):
            create_channel(fleet.storage, "canary", root, keyring, now=START)
        assert not (tmp_path / "channels").exists() or not channel_exists(fleet.storage, "canary")

    second = draft_next_root(first, {}, now=START, days=9)
    refused(second, "root 2 that ends 2030-01-10; expected root 1")
    old = draft_next_root(first, {}, now=START - timedelta(days=9), days=8)
    old.signed.version = 1
    refused(old, "root 1 that ends 2029-12-31; expected root 1, not expired")
    plain = draft_next_root(first, {}, now=START, days=9)
    plain.signed.version, plain.signed.consistent_snapshot = 1, False
    refused(plain, "with consistent_snapshot")
    first.signatures.clear()
    with pytest.raises(ChannelError, match="root: signed by 0 of the 1 keys"):
        create_channel(fleet.storage, "canary", first, other.keyring, now=START)
    refused(first, "timestamp: signed by 0 of the 1 keys", other.keyring.model_copy(update={"timestamp": ()}))

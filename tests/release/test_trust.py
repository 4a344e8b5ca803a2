"""Whoever can write the channels' folder, and has none of the keys, gets nothing signed and nothing taken off."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from release_channels import Fleet, plain_bundle

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keyring_file import trust
from tfx_edge.release.keys import load_keyring
from tfx_edge.release.policy import set_policy
from tfx_edge.release.promote import promote
from tfx_edge.release.rollback import rollback, stop
from tfx_edge.release.tick import tick
from tfx_edge.schemas import ChannelPolicy, Cohort, DeviceInfo, EdgeError, HealthRule, Lifetimes, RolloutStep

AT_ONCE = (RolloutStep(share=1, go_on=HealthRule(min_age_hours=0, min_healthy_devices=0)),)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    policies = {"canary": ChannelPolicy(steps=AT_ONCE, promote_to="beta"), "beta": ChannelPolicy(steps=AT_ONCE)}
    return Fleet(tmp_path).create("beta", "canary", policies=policies)


@pytest.fixture
def intruder(fleet: Fleet, tmp_path: Path) -> Fleet:
    """Someone with keys of their own and channels of the same names."""
    theirs = Fleet(tmp_path / "intruder").create("canary", "nightly", policies=dict.fromkeys(("canary", "nightly"), fleet.open().policy))
    for name in ("canary", "nightly"):
        theirs.publish(plain_bundle(666), name)
    return theirs


def put(intruder: Fleet, fleet: Fleet, name: str) -> None:
    target = fleet.folder / "channels" / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(intruder.folder / "channels" / name, target)


@pytest.mark.parametrize("name", ["canary", "nightly"])
def test_a_model_of_a_foreign_channel_is_never_handed_on(fleet: Fleet, intruder: Fleet, name: str) -> None:
    put(intruder, fleet, name)
    names = sorted({"canary", "beta", name})
    actions = tick(fleet.storage, names, fleet.keyring, now=fleet.now)
    assert ("failed", name) in [(action.action, action.channel) for action in actions]
    with pytest.raises(ChannelError, match=r"isn't the one that the keyring trusts|doesn't know this channel's root"):
        promote(fleet.storage, name, "beta", fleet.keyring, force=True, reason="try", now=fleet.now)
    assert fleet.open("beta").index.releases == ()


def test_a_stop_in_a_foreign_channel_takes_nothing_off(fleet: Fleet, intruder: Fleet) -> None:
    for name in ("canary", "beta"):
        fleet.publish(plain_bundle(1), name)
    intruder.publish(plain_bundle(1), "nightly")
    stop(intruder.storage, "nightly", intruder.keyring, reason="mischief", now=fleet.now)
    put(intruder, fleet, "nightly")
    actions = tick(fleet.storage, ("nightly", "canary", "beta"), fleet.keyring, now=fleet.now)
    assert [action.action for action in actions] == ["failed"]
    assert [release.number for release in fleet.open("beta").index.releases] == [1]


def test_nothing_is_published_to_a_channel_that_was_put_in_the_place_of_the_own(fleet: Fleet, intruder: Fleet) -> None:
    put(intruder, fleet, "canary")
    with pytest.raises(ChannelError, match="its first root isn't the one that the keyring trusts"):
        fleet.publish(plain_bundle(1))


def test_a_keyring_learns_a_channel_by_its_root_and_trusts_it_after_a_change_of_keys(fleet: Fleet, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "keyring.json"
    shutil.copytree(tmp_path / "keys", other.parent)
    other.write_text(fleet.keyring.model_copy(update={"roots": {}}).to_json())
    with pytest.raises(ChannelError, match="the keyring doesn't know this channel's root"):
        set_policy(fleet.storage, "beta", ChannelPolicy(), load_keyring(other), now=fleet.now)
    trust(other, "beta", fleet.keyring.roots["beta"])
    assert set_policy(fleet.storage, "beta", ChannelPolicy(), load_keyring(other), now=fleet.now).policy == ChannelPolicy()


def test_releases_come_to_the_next_channel_in_the_order_in_which_they_came_here(fleet: Fleet) -> None:
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2), cohort=Cohort(regions=("eu",)))
    fleet.later(hours=1)
    tick(fleet.storage, ("canary", "beta"), fleet.keyring, now=fleet.now)
    eu = DeviceInfo(device_id="one", runtime="2.21.0", region="eu")
    offers = [fleet.open(name).index.offered(eu) for name in ("canary", "beta")]
    assert [offer.bundle for offer in offers if offer is not None] == [plain_bundle(2).digest] * 2


def test_a_wider_release_takes_the_place_of_an_older_cohorts(fleet: Fleet) -> None:
    fleet.publish(plain_bundle(1), cohort=Cohort(regions=("eu",)))
    fleet.publish(plain_bundle(2))
    assert [release.number for release in fleet.open().index.releases] == [2]


def test_the_only_release_comes_back_after_a_mistaken_stop_with_a_reason(fleet: Fleet) -> None:
    fleet.publish(plain_bundle(1))
    stop(fleet.storage, "canary", fleet.keyring, reason="by mistake", now=fleet.now)
    with pytest.raises(ChannelError, match="give a --reason to bring it back"):
        rollback(fleet.storage, "canary", fleet.keyring, to=1, now=fleet.now)
    back = rollback(fleet.storage, "canary", fleet.keyring, to=1, reason="it was another device", now=fleet.now).release
    assert (back.number, back.bundle) == (2, plain_bundle(1).digest)
    assert fleet.open().log.taken_back == {} and not fleet.publish(plain_bundle(1)).changed
    verify_files(fleet.open())


def test_a_tick_fails_where_it_can_sign_nothing_and_warns_before_a_root_ends(fleet: Fleet) -> None:
    nothing = fleet.keyring.model_copy(update={"targets": (), "snapshot": (), "timestamp": ()})
    assert [action.action for action in tick(fleet.storage, ("beta",), nothing, now=fleet.now)] == ["skipped", "failed"]
    fleet.now += timedelta(days=340)
    warned = [action for action in tick(fleet.storage, ("beta",), fleet.keyring, now=fleet.now) if action.action == "warning"]
    assert "rotate-key --role root --threshold 1" in warned[0].text
    fleet.now += timedelta(days=30)
    ended = [action for action in tick(fleet.storage, ("beta",), fleet.keyring, now=fleet.now) if action.action == "failed"]
    assert "the root has ended" in ended[0].text


def test_rules_that_cant_work_are_refused(fleet: Fleet) -> None:
    for policy, why in (
        (ChannelPolicy(promote_to="canary"), "promote_to names the channel itself"),
        (ChannelPolicy(promote_to="stable"), "stable is no channel; make it first"),
    ):
        with pytest.raises(ChannelError, match=why):
            set_policy(fleet.storage, "canary", policy, fleet.keyring, now=fleet.now)
    for bad in (
        lambda: Lifetimes(root_days=1e9),
        lambda: HealthRule(min_age_hours=1e12),
        lambda: ChannelPolicy(revoked_devices=("../x",)),
        lambda: Cohort(minimum_runtime="3", below_runtime="2"),
        lambda: Cohort(targets=("",)),
    ):
        with pytest.raises(EdgeError):
            bad()

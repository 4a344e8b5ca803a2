"""Withdrawing releases, and when their files go."""

from pathlib import Path

import pytest
from release_channels import Fleet, contents, plain_bundle
from ruled_channels import POLICIES, on_offer

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.expire import expire
from tfx_edge.release.rollback import rollback, stop
from tfx_edge.release.tick import tick
from tfx_edge.schemas import Cohort

EU = Cohort(regions=("eu",))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create("canary", policies=POLICIES)


@pytest.fixture
def whole(tmp_path: Path) -> Fleet:
    """A channel where each release is for all devices at once."""
    return Fleet(tmp_path / "whole").create("canary")


def expired(fleet: Fleet, **options) -> list[int]:
    return [one.number for one in expire(fleet.storage, "canary", fleet.keyring, now=fleet.now, **options)]


def bundles(fleet: Fleet) -> set[str]:
    """Those that there are files of."""
    return {path.split("/")[3] for path in fleet.storage.list("canary/targets/bundles")}


def test_it_spares_the_newest_of_every_cohort(fleet):
    for seed in (1, 2, 3):
        fleet.publish(plain_bundle(seed))
        fleet.later(days=10)
    fleet.publish(plain_bundle(4), cohort=EU)
    with pytest.raises(ChannelError, match="release 3 can't be withdrawn: it is the newest for its devices"):
        expired(fleet, release=3)
    assert set(expired(fleet, older_than_days=15)) == {1, 2}
    assert [number for number, _, _ in on_offer(fleet)] == [4, 3]
    assert expired(fleet, older_than_days=15) == []
    fleet.later(days=1000)
    assert expired(fleet, older_than_days=15) == []


def test_nothing_to_withdraw_changes_no_byte(fleet):
    fleet.publish(plain_bundle(1))
    before = contents(fleet.folder)
    fleet.later(days=400)
    assert expired(fleet, older_than_days=15) == [] and contents(fleet.folder) == before


def test_files_go_with_the_change_after_so_that_a_device_can_finish_reading(whole):
    for seed in (1, 2):
        whole.publish(plain_bundle(seed))
    assert expired(whole, release=1) == [1]
    assert bundles(whole) == {plain_bundle(seed).digest for seed in (1, 2)}
    verify_files(whole.open())
    whole.publish(plain_bundle(3))
    assert bundles(whole) == {plain_bundle(seed).digest for seed in (2, 3)}
    verify_files(whole.open())


def test_files_go_when_a_tick_signs_anew_where_no_change_follows(whole):
    for seed in (1, 2):
        whole.publish(plain_bundle(seed))
    expired(whole, release=1)
    tick(whole.storage, ["canary"], whole.keyring, now=whole.now)
    assert plain_bundle(1).digest in bundles(whole), "a device may be reading still"
    whole.later(days=2)
    tick(whole.storage, ["canary"], whole.keyring, now=whole.now)
    assert bundles(whole) == {plain_bundle(2).digest}
    verify_files(whole.open())


def test_no_rollback_brings_back_what_was_withdrawn(whole):
    for seed in (1, 2):
        whole.publish(plain_bundle(seed))
    expired(whole, release=1)
    with pytest.raises(ChannelError, match=r"release 1 can't come back: its \S+ was removed"):
        rollback(whole.storage, "canary", whole.keyring, to=1)
    with pytest.raises(ChannelError, match="no release before 2 is left for all devices"):
        rollback(whole.storage, "canary", whole.keyring)


def test_a_bundle_that_a_release_on_offer_shares_stays(whole):
    whole.publish(plain_bundle(1))
    whole.publish(plain_bundle(2))
    rollback(whole.storage, "canary", whole.keyring, now=whole.now)
    with pytest.raises(ChannelError, match="a release on offer has the same"):
        expired(whole, release=1)


def test_withdrawing_a_release_that_took_another_back_unbans_nothing(whole):
    for seed in (1, 2):
        whole.publish(plain_bundle(seed))
    rollback(whole.storage, "canary", whole.keyring, now=whole.now)
    stop(whole.storage, "canary", whole.keyring, release=3, now=whole.now)
    assert expired(whole, release=3) == [3]
    for seed in (1, 2):
        with pytest.raises(ChannelError, match="this model was (stopped|rolled back) here"):
            whole.publish(plain_bundle(seed))


def test_it_takes_either_a_release_or_an_age_and_a_release_that_there_was(fleet):
    for options in ({}, {"release": 1, "older_than_days": 3}):
        with pytest.raises(ChannelError, match="give one of them"):
            expired(fleet, **options)
    with pytest.raises(ChannelError, match="release 7 can't be withdrawn: there never was one of that number"):
        expired(fleet, release=7)


def test_who_withdrew_what_and_why_is_logged(whole):
    for seed in (1, 2):
        whole.publish(plain_bundle(seed))
    expired(whole, release=1, who="ann", reason="licence ended")
    entry = whole.open().log.entries[-1]
    assert (entry.action, entry.who, entry.reason, entry.release.number) == ("expire", "ann", "licence ended", 1)

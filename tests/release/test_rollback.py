"""Taking releases back: which model comes again, for whom, and what stays as it is."""

from pathlib import Path

import pytest
from release_channels import START, Fleet, contents, plain_bundle
from ruled_channels import POLICIES, admitted, fails, on_offer, ticked

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.policy import set_policy
from tfx_edge.release.rollback import rollback, stop, stop_bundles
from tfx_edge.schemas import Cohort, DeviceInfo, RolloutStep

EU = Cohort(regions=("eu",))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A channel where each release is for all devices at once."""
    return Fleet(tmp_path).create("canary", policies={"canary": POLICIES["stable"]})


def back(fleet: Fleet, **options):
    return rollback(fleet.storage, "canary", fleet.keyring, now=fleet.now, **options).release


def stopped(fleet: Fleet, **options):
    made = stop(fleet.storage, "canary", fleet.keyring, now=fleet.now, **options)
    return None if made is None else made.release


def in_steps(fleet: Fleet) -> None:
    """From now on releases come to a quarter of the devices first."""
    steps = (RolloutStep(share=0.25), RolloutStep(share=1))
    set_policy(fleet.storage, "canary", fleet.open().policy.model_copy(update={"steps": steps}), fleet.keyring, now=fleet.now)


def test_the_older_model_comes_under_a_newer_number_for_all_devices_at_once(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    in_steps(fleet)
    again = back(fleet, reason="blurred", who="ann")
    assert (again.number, again.bundle, again.rollback_of, again.share) == (3, plain_bundle(1).digest, 2, 1)
    assert on_offer(fleet) == [(3, "1", 1)]
    entry = fleet.open().log.entries[-1]
    assert (entry.action, entry.who, entry.reason, entry.release) == ("rollback", "ann", "blurred", again)
    verify_files(fleet.open())


def test_a_rerun_of_the_pipeline_doesnt_undo_it_and_going_forward_by_hand_does(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    back(fleet, reason="blurred")
    with pytest.raises(ChannelError, match=r"rolled back here on 2030-01-01 \(blurred\)"):
        fleet.publish(plain_bundle(2))
    with pytest.raises(ChannelError, match="give a --reason to bring it back"):
        back(fleet, to=2)
    forward = back(fleet, to=2, reason="it was the lens")
    assert (forward.number, forward.bundle) == (4, plain_bundle(2).digest)
    with pytest.raises(ChannelError, match="rolled back here"):
        fleet.publish(plain_bundle(1))


def test_it_is_for_all_devices_even_where_the_older_one_never_was(fleet):
    """Those that took the one that is taken back would otherwise keep it."""
    in_steps(fleet)
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    again = back(fleet)
    fleet.later(hours=1)
    assert (again.share, again.published, again.share_since) == (1, START, START)
    fleet.publish(plain_bundle(3))
    later = back(fleet)
    assert (later.bundle, later.published, later.share_since) == (plain_bundle(1).digest, fleet.now, fleet.now)


def test_a_second_rollback_goes_further_back(fleet):
    for seed in (1, 2, 3):
        fleet.publish(plain_bundle(seed))
    assert [back(fleet).bundle, back(fleet).bundle] == [plain_bundle(2).digest, plain_bundle(1).digest]


def test_what_cant_be_done_is_said_and_changes_no_byte(fleet):
    before = contents(fleet.folder)
    for act in (back, stopped):
        with pytest.raises(ChannelError, match="on offer: nothing"):
            act(fleet)
    assert contents(fleet.folder) == before
    fleet.publish(plain_bundle(1))
    before = contents(fleet.folder)
    with pytest.raises(ChannelError, match="release 7 isn't on offer; on offer: 1"):
        stopped(fleet, release=7)
    with pytest.raises(ChannelError, match="--to 9: no other release than 1 bears that number"):
        back(fleet, to=9)
    with pytest.raises(ChannelError, match="--to 1: no other release than 1 bears that number"):
        back(fleet, to=1)
    with pytest.raises(ChannelError, match="no release before 1 is left for all devices; publish another model, or withdraw this one"):
        back(fleet)
    assert contents(fleet.folder) == before


def test_to_an_older_one_leaves_nothing_between_on_offer(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    in_steps(fleet)
    fleet.publish(plain_bundle(3))
    fleet.publish(plain_bundle(4))
    back(fleet, to=1)
    assert on_offer(fleet) == [(5, "1", 1)]


def test_a_stopped_model_is_refused_from_then_on(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    assert stopped(fleet, reason="crashes").bundle == plain_bundle(1).digest
    with pytest.raises(ChannelError, match=r"this model was stopped here on 2030-01-01 \(crashes\)"):
        fleet.publish(plain_bundle(2))
    assert [entry.action for entry in fleet.open().log.entries[-2:]] == ["stop", "rollback"]


def test_a_stop_without_a_release_before_it_withdraws_it_alone(fleet):
    fleet.publish(plain_bundle(1))
    assert stopped(fleet) is None and on_offer(fleet) == []
    verify_files(fleet.open())
    assert fleet.publish(plain_bundle(2)).release.number == 2


def test_the_way_back_passes_over_what_was_taken_back_before(fleet):
    for seed in (1, 2, 3, 4):
        fleet.publish(plain_bundle(seed))
    stopped(fleet)
    assert stopped(fleet).bundle == plain_bundle(2).digest


def test_a_model_on_its_way_to_few_devices_isnt_what_all_go_back_to(fleet):
    """A nightly pipeline publishes before the rollout of yesterday's model has ended."""
    fleet.publish(plain_bundle(1))
    in_steps(fleet)
    fleet.publish(plain_bundle(2))
    fleet.publish(plain_bundle(3))
    assert on_offer(fleet) == [(3, "3", 0.25), (2, "2", 0.25), (1, "1", 1)]
    stopped(fleet)
    assert on_offer(fleet) == [(5, "2", 0.25), (4, "1", 1)], "yesterday's rollout goes on as it was"


def test_a_newer_rollout_that_goes_well_survives_the_stop_of_the_older_release(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    in_steps(fleet)
    three = fleet.publish(plain_bundle(3)).release
    fleet.later(hours=5)
    stopped(fleet, release=2)
    assert on_offer(fleet) == [(5, "3", 0.25), (4, "1", 1)]
    moved = fleet.open().index.releases[0]
    assert moved == three.model_copy(update={"number": 5}), "its hours count on"
    assert fleet.open().log.entries[-1].action == "renumber"


def test_another_cohorts_devices_keep_their_model(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    fleet.publish(plain_bundle(3), cohort=EU)
    stopped(fleet, release=2)
    offered = [fleet.open().index.offered(DeviceInfo(device_id="one", runtime="2.21.0", region=region)) for region in ("eu", "us")]
    assert [one.bundle for one in offered] == [plain_bundle(3).digest, plain_bundle(1).digest]
    assert all(one.number > 3 for one in offered)


def test_a_cohorts_release_goes_back_to_what_all_devices_had(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2), cohort=EU)
    again = stopped(fleet)
    assert again.bundle == plain_bundle(1).digest and again.cohort == EU


def test_a_cohorts_own_unproven_release_isnt_preferred_to_what_all_devices_had(fleet):
    fleet.publish(plain_bundle(1))
    in_steps(fleet)
    fleet.publish(plain_bundle(2), cohort=EU)
    fleet.publish(plain_bundle(3), cohort=EU)
    assert stopped(fleet).bundle == plain_bundle(1).digest


def test_a_stopped_model_is_on_offer_to_no_cohort(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    fleet.publish(plain_bundle(2), cohort=EU)
    assert stopped(fleet, release=2).cohort == Cohort()
    assert [version for _, version, _ in on_offer(fleet)] == ["1", "1"]


def test_of_two_models_that_fail_together_neither_is_the_others_way_back(fleet):
    fleet.publish(plain_bundle(1))
    two = fleet.publish(plain_bundle(2)).release
    in_steps(fleet)
    three = fleet.publish(plain_bundle(3)).release
    fails(fleet, three)
    fails(fleet, two, others=(three,))
    assert ticked(fleet, "canary") == [("canary", "stop"), ("canary", "stop")]
    assert on_offer(fleet) == [(4, "1", 1)]
    assert fleet.open().index.releases[0].rollback_of == 3, "one release for both, in the newer one's stead"
    assert ticked(fleet, "canary") == []


def test_stopping_what_isnt_on_offer_changes_no_byte(fleet):
    fleet.publish(plain_bundle(1))
    before = contents(fleet.folder)
    assert stop_bundles(fleet.storage, "canary", fleet.keyring, {"f" * 64: "elsewhere"}) == ()
    assert contents(fleet.folder) == before


def test_devices_of_a_renumbered_release_report_on_its_new_number(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    in_steps(fleet)
    three = fleet.publish(plain_bundle(3)).release
    fleet.report(three, admitted(three, 1)[0], "failed")
    stopped(fleet, release=2)
    five = fleet.open().index.releases[0]
    fails(fleet, five)
    assert ticked(fleet, "canary") == [("canary", "stop")] and on_offer(fleet) == [(6, "1", 1)]

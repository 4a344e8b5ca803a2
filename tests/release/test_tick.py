"""What a row of channels does by itself."""

from pathlib import Path

import pytest
from release_channels import Fleet, contents, plain_bundle
from ruled_channels import NAMES, POLICIES, admitted, fails, on_offer, served, ticked
from unprivileged import unprivileged

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.names import channels_in
from tfx_edge.release.promote import promote
from tfx_edge.release.rollback import rollback, stop
from tfx_edge.release.tick import tick
from tfx_edge.schemas import ChannelPolicy, Cohort, HealthRule, Provenance, RolloutStep, RunInfo

AT_ONCE = HealthRule(min_age_hours=1, min_healthy_devices=0)

TICK = """
import sys
from datetime import datetime
from pathlib import Path
from tfx_edge.release.keys import load_keyring
from tfx_edge.release.storage import LocalStorage
from tfx_edge.release.tick import tick
folder = Path(sys.argv[1])
actions = tick(LocalStorage(folder / "channels"), ["canary"], load_keyring(folder / "keys" / "keyring.json"), now=datetime.fromisoformat(sys.argv[2]))
print(*(f"{action.action} {action.text}" for action in actions), sep="\\n")
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create(*NAMES, policies=POLICIES)


@pytest.fixture
def quick(tmp_path: Path) -> Fleet:
    """Channels where a release goes on after an hour, whatever devices say."""
    steps = (RolloutStep(share=1, go_on=AT_ONCE),)
    return Fleet(tmp_path / "quick").create("canary", "beta", policies={"canary": ChannelPolicy(steps=steps, promote_to="beta")})


def test_a_good_release_reaches_the_last_channel_by_ticks_alone_with_its_provenance(fleet):
    fleet.publish(plain_bundle(1), provenance=Provenance(run=RunInfo(run_id="monday")))
    did = []
    for name in ("canary", "canary", "beta"):
        assert ticked(fleet) == [], "not before its time"
        served(fleet, name)
        did += ticked(fleet)
        assert ticked(fleet) == [], "a second tick does nothing"
    assert did == [("canary", "grow"), ("canary", "promote"), ("beta", "promote")]
    [last] = [entry for entry in fleet.open("stable").log.entries if entry.action == "promote"]
    assert last.from_channel == "beta" and last.provenance.run.run_id == "monday" and last.who == "clock"
    assert last.release.bundle == plain_bundle(1).digest
    for name in NAMES:
        verify_files(fleet.open(name))


def test_a_second_tick_changes_no_byte(fleet):
    fleet.publish(plain_bundle(1))
    served(fleet, "canary")
    ticked(fleet)
    before = contents(fleet.folder)
    assert tick(fleet.storage, NAMES, fleet.keyring, now=fleet.now) == () and contents(fleet.folder) == before


def test_a_failing_release_is_taken_back_here_and_in_the_channels_after_it_and_never_handed_on(fleet):
    for name in NAMES:
        fleet.publish(plain_bundle(1), name)
    bad = fleet.publish(plain_bundle(2)).release
    promote(fleet.storage, "canary", "beta", fleet.keyring, force=True, reason="in a hurry", now=fleet.now)
    fails(fleet, bad)
    assert ticked(fleet) == [("canary", "stop"), ("beta", "stop")]
    for name in ("canary", "beta"):
        [again] = fleet.open(name).index.releases
        assert (again.bundle, again.rollback_of, again.share, again.number) == (plain_bundle(1).digest, 2, 1, 3)
        with pytest.raises(ChannelError, match="this model was stopped here"):
            fleet.publish(plain_bundle(2), name)
    fleet.later(days=30)
    assert ticked(fleet) == [] and on_offer(fleet, "stable") == [(1, "1", 1)]


def test_a_stop_by_hand_reaches_every_later_channel_with_the_next_tick(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(1), "stable")
    stop(fleet.storage, "canary", fleet.keyring, reason="recall", now=fleet.now)
    assert ticked(fleet) == [("stable", "stop")] and on_offer(fleet, "stable") == []
    assert fleet.open("stable").log.entries[-1].reason == "stopped in canary"


def test_a_rollback_by_hand_is_its_channels_affair(fleet):
    for name in NAMES:
        fleet.publish(plain_bundle(1), name)
        fleet.publish(plain_bundle(2), name)
    rollback(fleet.storage, "canary", fleet.keyring, now=fleet.now)
    assert ticked(fleet) == [] and on_offer(fleet, "beta") == [(2, "2", 1)]


def test_a_stop_reaches_no_channel_before_it(fleet):
    fleet.publish(plain_bundle(1))
    one = fleet.publish(plain_bundle(1), "stable").release
    fails(fleet, one, "stable")
    assert ticked(fleet) == [("stable", "stop")] and on_offer(fleet) == [(1, "1", 0.25)]


def test_a_release_that_fails_and_would_otherwise_go_on_is_stopped(fleet):
    fleet.publish(plain_bundle(1))
    served(fleet, "canary")
    fails(fleet, fleet.open().index.releases[0])
    assert ticked(fleet) == [("canary", "stop")]


def test_a_first_release_that_fails_is_withdrawn_and_that_is_said(fleet):
    fails(fleet, fleet.publish(plain_bundle(2)).release)
    [action] = tick(fleet.storage, NAMES, fleet.keyring, now=fleet.now)
    assert action.text.endswith("no release before it is left, devices keep what they have") and "3 of 3 devices failed" in action.text
    assert on_offer(fleet) == []
    verify_files(fleet.open())


def test_too_few_reports_stop_nothing(fleet):
    bad = fleet.publish(plain_bundle(1)).release
    for device in admitted(bad, 2):
        fleet.report(bad, device, "failed")
    assert ticked(fleet) == []


def test_each_cohort_has_its_own_rollout(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2), cohort=Cohort(targets=("litert-cpu",)))
    served(fleet, "canary")
    assert ticked(fleet) == [("canary", "grow")]
    assert on_offer(fleet) == [(2, "2", 1), (1, "1", 0.25)]


def test_only_the_newest_of_a_cohort_goes_on(fleet):
    one = fleet.publish(plain_bundle(1)).release
    two = fleet.publish(plain_bundle(2)).release
    fleet.later(hours=25)
    for device in admitted(one, 2, others=(two,)):
        fleet.report(one, device)
    assert ticked(fleet) == [] and on_offer(fleet) == [(2, "2", 0.25), (1, "1", 0.25)]


def test_a_rollback_isnt_promoted(quick):
    for seed in (1, 2):
        quick.publish(plain_bundle(seed))
    rollback(quick.storage, "canary", quick.keyring, now=quick.now)
    quick.later(days=1)
    assert ticked(quick, "canary", "beta") == []


def test_what_the_next_channel_rolled_back_isnt_promoted_to_it_again(quick):
    quick.publish(plain_bundle(1))
    quick.later(hours=2)
    assert ticked(quick, "canary", "beta") == [("canary", "promote")]
    quick.publish(plain_bundle(9), "beta")
    assert ticked(quick, "canary", "beta") == [], "what was published there by hand stays"
    stop(quick.storage, "beta", quick.keyring, release=2, now=quick.now)
    stop(quick.storage, "beta", quick.keyring, now=quick.now)
    quick.later(hours=2)
    assert ticked(quick, "canary", "beta") == [] and on_offer(quick, "beta") == []


def test_what_the_next_channel_stopped_before_it_came_out_here_isnt_promoted_to_it(quick):
    quick.publish(plain_bundle(1), "beta")
    stop(quick.storage, "beta", quick.keyring, now=quick.now)
    quick.later(hours=2)
    quick.publish(plain_bundle(1))
    quick.later(hours=2)
    assert ticked(quick, "canary", "beta") == [] and on_offer(quick, "beta") == []


def test_a_pipeline_that_goes_back_to_an_older_model_brings_it_to_the_next_channel(quick):
    for seed in (1, 2, 1):
        quick.publish(plain_bundle(seed))
        quick.later(hours=2)
        assert ticked(quick, "canary", "beta") == [("canary", "promote")]
    assert on_offer(quick, "beta") == [(3, "1", 1)]


def test_a_machine_without_the_targets_key_keeps_signatures_fresh_and_says_that_no_rule_was_applied(fleet):
    fails(fleet, fleet.publish(plain_bundle(1)).release)
    fleet.later(hours=50)
    keyring = fleet.keyring.model_copy(update={"targets": ()})
    actions = tick(fleet.storage, ["canary"], keyring, now=fleet.now)
    assert [action.action for action in actions] == ["skipped", "renew"]
    assert actions[1].text == "timestamp" and "the rules weren't applied" in actions[0].text
    assert fleet.open().expired(fleet.now) == () and on_offer(fleet) == [(1, "1", 0.25)]
    fleet.later(days=100)
    last = tick(fleet.storage, ["canary"], keyring, now=fleet.now)[-1]
    assert last.action == "failed" and "targets: expired" in last.text


def test_a_machine_without_the_next_channels_key_promotes_nothing_and_still_grows(fleet):
    fleet.publish(plain_bundle(1))
    beta = set(fleet.open("beta").root.signed.roles["targets"].keyids)
    targets = tuple(one for one in fleet.keyring.targets if one.key_id not in beta)
    keyring = fleet.keyring.model_copy(update={"targets": targets})
    did = []
    for _ in range(2):
        served(fleet, "canary")
        did += [action.action for action in tick(fleet.storage, ["canary"], keyring, now=fleet.now) if action.action != "renew"]
    assert did == ["grow"] and on_offer(fleet, "beta") == []


def test_a_busy_channel_doesnt_keep_the_others_from_their_rules(fleet):
    fleet.publish(plain_bundle(1), "beta")
    served(fleet, "beta")
    with fleet.storage.lock("stable/lock"):
        actions = tick(fleet.storage, NAMES, fleet.keyring, now=fleet.now)
    did = [(action.channel, action.action) for action in actions if action.channel != "canary"]
    assert did == [("beta", "failed"), ("beta", "renew"), ("stable", "failed")]
    assert "stable" in actions[0].text and "is changing it" in actions[0].text, "the promotion waits for the next tick"
    assert ("beta", "promote") in ticked(fleet)


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"{}")], ids=["timestamp gone", "timestamp overwritten"])
def test_behind_a_damaged_channel_nothing_spreads_but_what_fails_is_stopped_and_signatures_stay_fresh(fleet, damage):
    """What was stopped in it can't be told: here, the very model that would go on."""
    for name in NAMES[:2]:
        fleet.publish(plain_bundle(1), name)
    served(fleet, "beta")
    timestamp = fleet.folder / "channels" / "canary" / "metadata" / "timestamp.json"
    stop(fleet.storage, "canary", fleet.keyring, reason="recall", now=fleet.now)
    whole = timestamp.read_bytes()
    damage(timestamp)
    actions = tick(fleet.storage, channels_in(fleet.storage), fleet.keyring, now=fleet.now)
    did = [(action.channel, action.action) for action in actions]
    assert sorted(did) == [("beta", "failed"), ("beta", "renew"), ("canary", "failed"), ("stable", "renew")]
    told = {action.channel: action.text for action in actions if action.action == "failed"}
    assert "canary/metadata/timestamp.json" in told["canary"] and "stopped in canary, which may come before it" in told["beta"]
    with pytest.raises(ChannelError, match="stopped in canary, which may come before it"):
        promote(fleet.storage, "beta", "stable", fleet.keyring, force=True, reason="in a hurry", now=fleet.now)
    assert on_offer(fleet, "stable") == []
    fails(fleet, fleet.open("beta").index.releases[0], "beta")
    assert ("beta", "stop") in ticked(fleet)
    timestamp.write_bytes(whole)
    assert ticked(fleet) == [] and on_offer(fleet, "stable") == []


def test_health_that_cant_be_read_isnt_taken_for_none(fleet):
    """A release that fails on devices whose folders this user can't read doesn't go on."""
    fleet.publish(plain_bundle(1))
    served(fleet, "canary")
    for device in admitted(fleet.open().index.releases[0], 4)[2:]:
        hidden = fleet.report(fleet.open().index.releases[0], device, "failed").parent
    hidden.chmod(0)
    ran = unprivileged(TICK, fleet.folder, fleet.now.isoformat())
    hidden.chmod(0o755)
    assert ran.stdout.startswith("failed ") and f"{hidden.name}: can't be read: Permission denied" in ran.stdout, ran.stderr
    assert on_offer(fleet) == [(1, "1", 0.25)]


def test_what_was_done_in_a_channel_before_something_failed_is_told(fleet):
    """The older release grows; the other cohort's, which is newer, is promoted to a channel that is busy."""
    fleet.publish(plain_bundle(1), cohort=Cohort(targets=("litert-cpu",)))
    fleet.publish(plain_bundle(2), cohort=Cohort(minimum_runtime="2.0"))
    served(fleet, "canary")
    assert ticked(fleet, "canary") == [("canary", "grow")]
    served(fleet, "canary")
    older = fleet.open().index.releases[-1]
    for device in admitted(older, 2):
        fleet.report(older, device)
    with fleet.storage.lock("beta/lock"):
        assert ticked(fleet, "canary") == [("canary", "grow"), ("canary", "failed")]
    assert on_offer(fleet) == [(2, "2", 1), (1, "1", 1)]


def test_channels_that_promote_in_a_circle_end(tmp_path):
    steps = (RolloutStep(share=1, go_on=AT_ONCE),)
    policies = {name: ChannelPolicy(steps=steps, promote_to=to) for name, to in (("a", "b"), ("b", "a"))}
    fleet = Fleet(tmp_path).create("a", "b", policies=policies)
    fleet.publish(plain_bundle(1), "a")
    fleet.later(hours=2)
    assert ticked(fleet, "a", "b") == [("a", "promote")]
    fleet.later(hours=2)
    assert ticked(fleet, "a", "b") == []
    stop(fleet.storage, "b", fleet.keyring, now=fleet.now)
    assert ticked(fleet, "a", "b") == [("a", "stop")]

"""What a policy says of a release, and what a tick makes of it in a row of channels."""

import base64
import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_channels import START, Fleet, bundle, contents

from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.expire import expire
from tfx_edge.release.health import MAX_REPORT_BYTES, Counts, read_health
from tfx_edge.release.policy import set_policy
from tfx_edge.release.promote import NotReadyError, promote
from tfx_edge.release.rollback import rollback, stop
from tfx_edge.release.rules import judge
from tfx_edge.release.status import status
from tfx_edge.release.tick import tick
from tfx_edge.schemas import (
    BundleFile,
    ChannelPolicy,
    Cohort,
    DeviceInfo,
    EmergencyStop,
    HealthRule,
    Provenance,
    Release,
    RolloutStep,
    RunInfo,
)

RULE = HealthRule(min_age_hours=24, min_healthy_devices=2, max_failure_rate=0.1)
STEPS = (RolloutStep(share=0.25, go_on=RULE), RolloutStep(share=1, go_on=RULE))
STOP = EmergencyStop(max_failure_rate=0.4, min_reports=3)
FILES = tuple(BundleFile(path=path, digest="0" * 64, size_bytes=1) for path in ("tflite", "edge/manifest.json", "edge/golden.npz"))
RELEASE = Release(number=3, bundle="a" * 64, files=FILES, share=0.25, published=START, share_since=START)
POLICY = ChannelPolicy(steps=STEPS, promote_to="beta", emergency_stop=STOP)


def release(**changes) -> Release:
    return RELEASE.model_copy(update=changes)


def judged(one=RELEASE, policy=POLICY, hours=25.0, healthy=2, failed=0, **options):
    return judge(one, policy, Counts(healthy, failed), START + timedelta(hours=hours), **options)


def test_a_release_grows_when_its_step_is_served_and_not_before():
    grown = judged()
    assert (grown.action, grown.share) == ("grow", 1)
    assert judged(hours=20).text == "needs 4.0 hours more"
    assert judged(healthy=1).text == "needs 1 more healthy devices"
    assert judged(healthy=8, failed=2).text == "needs fewer failures: 2 of 10 devices failed, 20.0%, 10.0% is allowed"
    assert {judged(hours=20).action, judged(healthy=1).action, judged(healthy=8, failed=2).action} == {"hold"}


def test_it_is_promoted_after_the_last_step_and_stays_where_no_channel_follows():
    assert judged(release(share=1.0)).action == "promote"
    assert judged(release(share=1.0), POLICY.model_copy(update={"promote_to": None})).action == "stay"
    assert judged(release(share=1.0), hours=23).action == "hold"


def test_neither_an_older_release_nor_one_that_took_another_back_goes_on():
    assert judged(newest=False).action == "stay"
    assert judged(release(share=1.0, rollback_of=2)).action == "stay"


@given(st.integers(0, 50), st.integers(0, 50), st.booleans(), st.floats(0, 100))
def test_it_is_stopped_exactly_where_enough_devices_reported_and_too_many_failed(healthy, failed, newest, hours):
    stopped = judged(hours=hours, healthy=healthy, failed=failed, newest=newest).action == "stop"
    assert stopped == (healthy + failed >= 3 and failed > 0.4 * (healthy + failed))


def test_a_share_between_two_steps_of_a_newer_policy_goes_on_by_the_lower_ones_rule():
    steps = (
        RolloutStep(share=0.1),
        RolloutStep(share=0.2, go_on=HealthRule(min_age_hours=0, min_healthy_devices=0)),
        RolloutStep(share=0.5),
    )
    grown = judged(policy=POLICY.model_copy(update={"steps": steps}), hours=0, healthy=0)
    assert (grown.action, grown.share) == ("grow", 0.5)


POLICIES = {
    "canary": POLICY,
    "beta": ChannelPolicy(steps=(RolloutStep(share=1, go_on=RULE),), promote_to="stable", emergency_stop=STOP),
    "stable": ChannelPolicy(emergency_stop=STOP),
}
NAMES = tuple(POLICIES)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create(*NAMES, policies=POLICIES)


def admitted(one: Release, count: int) -> list[str]:
    """Ids of devices that a release is for."""
    ids = (f"device-{i}" for i in range(10_000))
    return [i for i, _ in zip((i for i in ids if one.admits(DeviceInfo(device_id=i, runtime="2.21.0"))), range(count), strict=False)]


def ticked(fleet: Fleet) -> list[tuple[str, str]]:
    return [(action.channel, action.action) for action in tick(fleet.storage, NAMES, fleet.keyring, now=fleet.now, who="clock")]


def served(fleet: Fleet, name: str) -> None:
    """A day passes, and devices report well on the newest release of a channel."""
    fleet.later(hours=25)
    newest = fleet.open(name).index.releases[0]
    for device in admitted(newest, 2):
        fleet.report(newest, device, name=name)


def test_a_good_release_reaches_the_last_channel_by_ticks_alone_with_its_provenance(fleet):
    fleet.publish(bundle(1), provenance=Provenance(run=RunInfo(run_id="monday")))
    did = []
    for name in ("canary", "canary", "beta"):
        served(fleet, name)
        did += [action for action in ticked(fleet) if action[1] not in ("renew",)]
        assert [action for action in ticked(fleet) if action[1] != "renew"] == [], "a second tick does nothing"
    assert did == [("canary", "grow"), ("canary", "promote"), ("beta", "promote")]
    [last] = [entry for entry in fleet.open("stable").log.entries if entry.action == "promote"]
    assert last.from_channel == "beta" and last.provenance.run.run_id == "monday" and last.who == "clock"
    assert last.release.bundle == bundle(1).digest
    for name in NAMES:
        verify_files(fleet.open(name))


def test_a_second_tick_changes_no_byte(fleet):
    fleet.publish(bundle(1))
    served(fleet, "canary")
    ticked(fleet)
    before = contents(fleet.folder)
    assert ticked(fleet) == [] and contents(fleet.folder) == before


def test_a_failing_release_is_taken_back_here_and_in_the_channels_after_it_and_never_handed_on(fleet):
    for name in NAMES:
        fleet.publish(bundle(1), name)
    bad = fleet.publish(bundle(2)).release
    promote(fleet.storage, "canary", "beta", fleet.keyring, force=True, reason="in a hurry", now=fleet.now)
    for device in admitted(bad, 3):
        fleet.report(bad, device, "failed")
    assert ticked(fleet) == [("canary", "stop"), ("beta", "stop")]
    for name in ("canary", "beta"):
        [again] = fleet.open(name).index.releases
        assert (again.bundle, again.rollback_of, again.share, again.number) == (bundle(1).digest, 2, 1, 3)
        with pytest.raises(ChannelError, match="this model was stopped here"):
            fleet.publish(bundle(2), name)
    fleet.later(days=30)
    assert {action for _, action in ticked(fleet)} == {"renew"}
    assert fleet.open("stable").index.releases[0].bundle == bundle(1).digest


def test_a_first_release_that_fails_is_withdrawn(fleet):
    bad = fleet.publish(bundle(2)).release
    for device in admitted(bad, 3):
        fleet.report(bad, device, "failed")
    assert ticked(fleet) == [("canary", "stop")]
    assert fleet.open().index.releases == ()
    verify_files(fleet.open())


def test_a_rollback_by_hand_brings_the_older_model_under_a_newer_number_and_a_rerun_doesnt_undo_it(fleet):
    fleet.publish(bundle(1))
    fleet.publish(bundle(2))
    back = rollback(fleet.storage, "canary", fleet.keyring, reason="blurred", now=fleet.now).release
    assert (back.number, back.bundle, back.rollback_of) == (3, bundle(1).digest, 2)
    with pytest.raises(ChannelError, match=r"rolled back here on 2030-01-01 \(blurred\)"):
        fleet.publish(bundle(2))
    forward = rollback(fleet.storage, "canary", fleet.keyring, to=2, now=fleet.now).release
    assert (forward.number, forward.bundle) == (4, bundle(2).digest)
    with pytest.raises(ChannelError, match="no release before 1 is left for all devices"):
        fleet.publish(bundle(1), "beta")
        rollback(fleet.storage, "beta", fleet.keyring, now=fleet.now)


def test_what_a_rollback_is_asked_for_and_cant_do_is_said(fleet):
    fleet.publish(bundle(1))
    with pytest.raises(ChannelError, match="release 7 isn't on offer; on offer: 1"):
        stop(fleet.storage, "canary", fleet.keyring, release=7)
    with pytest.raises(ChannelError, match="--to 9: no other release than 1 bears that number"):
        rollback(fleet.storage, "canary", fleet.keyring, to=9)
    fleet.publish(bundle(2))
    full = POLICY.model_copy(update={"steps": (RolloutStep(share=1),)})
    set_policy(fleet.storage, "canary", full, fleet.keyring, now=fleet.now)
    fleet.publish(bundle(3))
    assert [one.number for one in expire(fleet.storage, "canary", fleet.keyring, release=1, now=fleet.now)] == [1]
    with pytest.raises(ChannelError, match="release 1 can't come back: its tflite was removed|its edge/golden.npz was removed"):
        rollback(fleet.storage, "canary", fleet.keyring, to=1)


def test_a_cohorts_release_goes_back_to_what_all_devices_had(fleet):
    fleet.publish(bundle(1))
    fleet.publish(bundle(2), cohort=Cohort(regions=("eu",)))
    back = stop(fleet.storage, "canary", fleet.keyring, now=fleet.now)
    assert back.release.bundle == bundle(1).digest and back.release.cohort == Cohort(regions=("eu",))


def test_a_release_is_promoted_by_hand_when_the_rules_agree_or_with_a_reason(fleet):
    fleet.publish(bundle(1))
    before = contents(fleet.folder)
    with pytest.raises(NotReadyError, match="release 1 is offered to 25% of devices; it needs 100%"):
        promote(fleet.storage, "canary", "beta", fleet.keyring, now=fleet.now)
    with pytest.raises(ChannelError, match="give a reason"):
        promote(fleet.storage, "canary", "beta", fleet.keyring, force=True, now=fleet.now)
    assert contents(fleet.folder) == before
    served(fleet, "canary")
    ticked(fleet)
    with pytest.raises(NotReadyError, match="needs 24.0 hours more"):
        promote(fleet.storage, "canary", "beta", fleet.keyring, now=fleet.now)
    served(fleet, "canary")
    assert promote(fleet.storage, "canary", "beta", fleet.keyring, now=fleet.now).changed
    assert not promote(fleet.storage, "canary", "beta", fleet.keyring, now=fleet.now).changed


def test_expiry_spares_the_newest_of_every_cohort_and_what_a_release_on_offer_shares(fleet):
    for seed in (1, 2, 3):
        fleet.publish(bundle(seed))
        fleet.later(days=10)
    fleet.publish(bundle(4), cohort=Cohort(regions=("eu",)))
    with pytest.raises(ChannelError, match="release 3 can't be withdrawn: it is the newest for its devices"):
        expire(fleet.storage, "canary", fleet.keyring, release=3)
    gone = expire(fleet.storage, "canary", fleet.keyring, older_than_days=15, now=fleet.now)
    assert {one.number for one in gone} == {1, 2}
    assert [one.number for one in fleet.open().index.releases] == [4, 3]
    assert expire(fleet.storage, "canary", fleet.keyring, older_than_days=15, now=fleet.now) == ()
    fleet.publish(bundle(5), cohort=Cohort(regions=("us",)))
    there = {path.split("/")[3] for path in fleet.storage.list("canary/targets/bundles")}
    assert there == {bundle(seed).digest for seed in (3, 4, 5)}, "files go with the change after"
    verify_files(fleet.open())


def test_reports_count_once_a_device_and_only_where_the_fleet_vouches_for_it(fleet, tmp_path):
    one = fleet.publish(bundle(1)).release
    first, second, third = admitted(one, 3)
    fleet.report(one, first, "failed")
    fleet.report(one, first, "healthy")
    fleet.report(one, second, "failed")
    outside = next(i for i in (f"device-{i}" for i in range(1000)) if not one.admits(DeviceInfo(device_id=i, runtime="2.21.0")))
    bad = {
        fleet.report(one, outside): "isn't for this device",
        fleet.report(one, third, channel="beta"): "report on the channel beta",
        fleet.report(one, third, bundle="b" * 64): "has another bundle",
        fleet.report(one.model_copy(update={"number": 8}), third): "release 8 was never offered",
    }
    other = Fleet(tmp_path / "other").create("canary")
    stranger = other.report(other.publish(bundle(1)).release, "device-3")
    here = fleet.folder / "channels" / "canary" / "health"
    copies = {
        here / "device-3" / "1.json": (stranger.read_bytes(), "the enrolment isn't signed by a fleet key"),
        here / first / "9.json": (fleet.report(one, second, "failed").read_bytes(), f"enrolment of {second}; expected the folder's device"),
        here / "x" / "1.json": (b"{", "SignedReport"),
        here / "x" / "2.json": (b" " * (MAX_REPORT_BYTES + 1), "larger than"),
        here / "x" / "3.json": (b'{"report": {}, "enrolment": {"payload": 3}}', "no DSSE envelope"),
    }
    for file, (content, why) in copies.items():
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        bad[file] = why
    health = read_health(fleet.open())
    assert health.counts(1) == Counts(healthy=1, failed=1)
    assert {fleet.folder / "channels" / path for path in health.refused} == set(bad)
    for file, why in bad.items():
        assert why in health.refused[str(file.relative_to(fleet.folder / "channels"))]
    assert status(fleet.storage, "canary", fleet.now).releases[0].failed == 1


def test_a_forged_report_doesnt_count(fleet):
    one = fleet.publish(bundle(1)).release
    [device] = admitted(one, 1)
    file = fleet.report(one, device, "failed")
    document = json.loads(file.read_text())
    payload = base64.b64decode(document["report"]["payload"]).replace(b'"failed"', b'"healthy"')
    document["report"]["payload"] = base64.b64encode(payload).decode()
    file.write_text(json.dumps(document))
    health = read_health(fleet.open())
    assert health.counts(1).reports == 0
    assert list(health.refused.values()) == ["the report isn't signed by the enrolled device's key"]


def test_a_revoked_devices_reports_no_longer_count(fleet):
    one = fleet.publish(bundle(1)).release
    first, second = admitted(one, 2)
    fleet.report(one, first, "failed")
    fleet.report(one, second)
    policy = fleet.open().policy.model_copy(update={"revoked_devices": (first,)})
    set_policy(fleet.storage, "canary", policy, fleet.keyring, now=fleet.now)
    assert read_health(fleet.open()).counts(1) == Counts(healthy=1, failed=0)


def test_a_tick_clears_away_reports_that_newer_ones_replaced(fleet):
    one = fleet.publish(bundle(1)).release
    [device] = admitted(one, 1)
    files = [fleet.report(one, device) for _ in range(3)]
    ticked(fleet)
    assert [file.exists() for file in files] == [False, False, True]
    set_policy(fleet.storage, "canary", ChannelPolicy(fleet_keys=fleet.open().policy.fleet_keys), fleet.keyring, now=fleet.now)
    fleet.publish(bundle(2))
    ticked(fleet)
    assert not files[2].exists()


def test_a_machine_without_the_targets_key_keeps_signatures_fresh_and_says_that_no_rule_was_applied(fleet):
    fleet.publish(bundle(1))
    served(fleet, "canary")
    served(fleet, "canary")
    keyring = fleet.keyring.model_copy(update={"targets": ()})
    actions = tick(fleet.storage, ["canary"], keyring, now=fleet.now)
    assert [action.action for action in actions] == ["passed", "renew"]
    assert actions[1].text == "timestamp"
    assert fleet.open().expired(fleet.now) == ()
    fleet.later(days=100)
    last = tick(fleet.storage, ["canary"], keyring, now=fleet.now)[-1]
    assert last.action == "failed" and "targets: expired" in last.text


def test_a_damaged_or_busy_channel_doesnt_keep_the_others_from_their_rules(fleet):
    fleet.publish(bundle(1), "beta")
    served(fleet, "beta")
    (fleet.folder / "channels" / "canary" / "metadata" / "timestamp.json").write_bytes(b"{}")
    with fleet.storage.lock("stable/lock"):
        actions = tick(fleet.storage, NAMES, fleet.keyring, now=fleet.now)
    did = [(action.channel, action.action) for action in actions]
    assert did == [("canary", "failed"), ("beta", "failed"), ("beta", "renew"), ("stable", "failed")]
    assert "timestamp.json: no TUF metadata" in actions[0].text
    assert "stable" in actions[1].text and "is changing it" in actions[1].text, "the promotion waits for the next tick"
    assert ("beta", "promote") in ticked(fleet)


@given(st.integers(0, 2**64), st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_a_device_keeps_its_model_while_the_share_grows(device, shares):
    info = DeviceInfo(device_id=f"d{device}", runtime="2.21.0")
    inside = [release(share=share).admits(info) for share in sorted(shares)]
    assert inside == sorted(inside)


def test_a_share_of_the_devices_is_that_share_and_other_devices_come_first_with_another_bundle():
    ids = [DeviceInfo(device_id=f"device-{i}", runtime="2.21.0") for i in range(4000)]
    first, second = ({i.device_id for i in ids if release(share=0.2, bundle=bundle).admits(i)} for bundle in ("a" * 64, "b" * 64))
    # Binomial with n=4000, p=0.2: five standard deviations are 126.
    assert abs(len(first) - 800) < 126 and abs(len(second) - 800) < 126
    assert abs(len(first & second) - 160) < 62, "independent: p is 0.04"


def test_a_channel_opens_by_its_own_name_alone(fleet):
    (fleet.folder / "channels" / "canary").rename(fleet.folder / "channels" / "nightly")
    with pytest.raises(ChannelError, match="it is the channel canary"):
        open_channel(fleet.storage, "nightly")

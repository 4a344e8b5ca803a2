"""Handing a release on by hand: what the rules of its channel say, and what comes along."""

from itertools import pairwise
from pathlib import Path

import pytest
from release_channels import Fleet, contents, plain_bundle
from ruled_channels import NAMES, POLICIES, on_offer, served, ticked

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.promote import NotReadyError, promote
from tfx_edge.release.rollback import rollback, stop
from tfx_edge.schemas import Cohort, Provenance, RunInfo

FORCED = {"force": True, "reason": "in a hurry"}
MONDAY = Provenance(run=RunInfo(run_id="monday"))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create(*NAMES, policies=POLICIES)


def promoted(fleet: Fleet, source: str = "canary", destination: str = "beta", **options):
    return promote(fleet.storage, source, destination, fleet.keyring, now=fleet.now, **options)


def test_a_release_is_promoted_when_the_rules_agree_and_not_before(fleet):
    fleet.publish(plain_bundle(1))
    before = contents(fleet.folder)
    with pytest.raises(NotReadyError, match="release 1 is offered to 25% of devices; it needs 100%"):
        promoted(fleet)
    assert contents(fleet.folder) == before
    served(fleet, "canary")
    ticked(fleet, "canary")
    with pytest.raises(NotReadyError, match="release 1 needs 24.0 hours more"):
        promoted(fleet)
    served(fleet, "canary")
    assert promoted(fleet).changed and on_offer(fleet, "beta") == [(1, "1", 1)]


def test_the_same_again_changes_no_byte(fleet):
    fleet.publish(plain_bundle(1))
    promoted(fleet, **FORCED)
    before = contents(fleet.folder)
    assert not promoted(fleet, **FORCED).changed and contents(fleet.folder) == before


def test_force_takes_a_reason_which_the_log_keeps(fleet):
    fleet.publish(plain_bundle(1))
    with pytest.raises(ChannelError, match="give a reason"):
        promoted(fleet, force=True)
    promoted(fleet, who="ann", **FORCED)
    entry = fleet.open("beta").log.entries[-1]
    assert (entry.action, entry.who, entry.reason, entry.from_channel) == ("promote", "ann", "in a hurry", "canary")


def test_bytes_cohort_and_provenance_come_along_through_all_channels(fleet):
    eu = Cohort(regions=("eu",))
    made = plain_bundle(1).with_provenance(MONDAY)
    fleet.publish(made, cohort=eu, provenance=MONDAY)
    for source, destination in pairwise(NAMES):
        promoted(fleet, source, destination, **FORCED)
    channel = fleet.open("stable")
    verify_files(channel)
    [one] = channel.index.releases
    assert one.cohort == eu and {file.path: channel.read(one.target_path(file)) for file in one.files} == made.files
    assert channel.log.entries[-1].provenance == MONDAY


def test_a_file_that_isnt_what_was_signed_isnt_handed_on(fleet):
    fleet.publish(plain_bundle(1))
    [model] = (fleet.folder / "channels" / "canary" / "targets" / "bundles").rglob("*.tflite")
    model.write_bytes(b"x" * model.stat().st_size)
    before = contents(fleet.folder / "channels" / "beta")
    with pytest.raises(ChannelError, match="it isn't what was signed"):
        promoted(fleet, **FORCED)
    assert contents(fleet.folder / "channels" / "beta") == before


def test_an_older_release_or_one_that_took_another_back_needs_force(fleet):
    fleet.publish(plain_bundle(1))
    fleet.publish(plain_bundle(2))
    with pytest.raises(NotReadyError, match="release 1 isn't the newest for its devices"):
        promoted(fleet, release=1)
    assert promoted(fleet, release=1, **FORCED).release.bundle == plain_bundle(1).digest
    rollback(fleet.storage, "canary", fleet.keyring, now=fleet.now)
    with pytest.raises(NotReadyError, match="release 3 took back release 2 and isn't a new one"):
        promoted(fleet)


def test_what_isnt_on_offer_cant_be_promoted(fleet):
    with pytest.raises(ChannelError, match="on offer: nothing"):
        promoted(fleet)
    fleet.publish(plain_bundle(1))
    with pytest.raises(ChannelError, match="release 4 isn't on offer; on offer: 1"):
        promoted(fleet, release=4)
    with pytest.raises(ChannelError, match="canary: promotes to itself"):
        promoted(fleet, destination="canary")


def test_a_model_goes_past_no_channel_that_stopped_it_even_by_force(fleet):
    fleet.publish(plain_bundle(1))
    promoted(fleet, **FORCED)
    stop(fleet.storage, "beta", fleet.keyring, reason="too slow", now=fleet.now)
    with pytest.raises(ChannelError, match="beta: this model was stopped here"):
        promoted(fleet, **FORCED)
    with pytest.raises(ChannelError, match=r"stable: this model was stopped in beta, a channel before it, on 2030-01-01 \(too slow\)"):
        promoted(fleet, destination="stable", **FORCED)
    assert on_offer(fleet, "stable") == []


def test_a_damaged_channel_that_isnt_concerned_stops_no_promotion(fleet):
    fleet.publish(plain_bundle(1))
    (fleet.folder / "channels" / "stable" / "metadata" / "timestamp.json").write_bytes(b"{}")
    assert promoted(fleet, **FORCED).changed

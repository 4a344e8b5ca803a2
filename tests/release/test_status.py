"""What a channel tells of itself."""

from pathlib import Path

import pytest
from release_channels import Fleet, plain_bundle
from ruled_channels import NAMES, POLICIES, admitted, fails, served, ticked

from tfx_edge.release.errors import ChannelError
from tfx_edge.release.rollback import rollback
from tfx_edge.release.status import status
from tfx_edge.schemas import ChannelStatus


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create(*NAMES, policies=POLICIES)


def told(fleet: Fleet, name: str = "canary") -> ChannelStatus:
    return status(fleet.storage, name, fleet.now)


def test_a_release_is_told_with_its_model_its_reports_and_what_it_waits_for(fleet):
    one = fleet.publish(plain_bundle(1)).release
    fleet.later(hours=21.5)
    fleet.report(one, admitted(one, 1)[0])
    [found] = told(fleet).releases
    assert (found.number, found.model, found.share, found.healthy, found.failed) == (1, "dense 1", 0.25, 1, 0)
    assert found.rules == "hold: needs 2.5 hours more, 1 more healthy device"
    fails(fleet, one)
    assert told(fleet).releases[0].rules == "stop: 3 of 3 devices failed, 100.0%; more than 40.0% stops a release"


def test_it_tells_what_a_tick_would_do_and_then_that_it_was_done(fleet):
    fleet.publish(plain_bundle(1))
    for word, after in (("grow", "hold"), ("promote", "stay: promoted to beta")):
        served(fleet, "canary")
        assert told(fleet).releases[0].rules.startswith(word)
        assert ticked(fleet) == [("canary", word)]
        assert told(fleet).releases[0].rules.startswith(after)


def test_a_next_channel_that_doesnt_open_is_that_ones_affair(fleet):
    fleet.publish(plain_bundle(1))
    for _ in range(2):
        served(fleet, "canary")
        ticked(fleet)
    (fleet.folder / "channels" / "beta" / "metadata" / "timestamp.json").write_bytes(b"{}")
    assert told(fleet).releases[0].rules.startswith("promote")


def test_a_rollback_names_what_it_took_back(fleet):
    fleet.publish(plain_bundle(1), "stable")
    fleet.publish(plain_bundle(2), "stable")
    rollback(fleet.storage, "stable", fleet.keyring, now=fleet.now)
    [found] = told(fleet, "stable").releases
    assert (found.rollback_of, found.rules) == (2, "stay: took back release 2")


def test_roles_are_told_with_their_keys_and_when_they_end(fleet):
    found = told(fleet)
    assert [role.role for role in found.roles] == ["root", "targets", "snapshot", "timestamp"] and found.promote_to == "beta"
    assert all(len(role.keys) == role.threshold == 1 and role.version == 1 and not role.expired for role in found.roles)
    fleet.later(days=8)
    assert [role.role for role in told(fleet).roles if role.expired] == ["snapshot", "timestamp"]


def test_a_report_that_is_refused_is_named(fleet):
    one = fleet.publish(plain_bundle(1)).release
    file = fleet.report(one, admitted(one, 1)[0], bundle="b" * 64)
    assert told(fleet).refused_reports == {f"canary/health/{file.parent.name}/1.json": "release 1 has another bundle"}


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"x")])
def test_a_channel_with_a_damaged_file_is_no_verified_one(fleet, damage):
    fleet.publish(plain_bundle(1))
    [model] = (fleet.folder / "channels" / "canary" / "targets" / "bundles").rglob("*.tflite")
    damage(model)
    with pytest.raises(ChannelError, match="canary/targets/bundles"):
        told(fleet)

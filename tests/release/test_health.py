"""Which reports of devices count, and that nothing that lies among them stops a channel."""

import base64
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_channels import Fleet, plain_bundle
from ruled_channels import POLICIES, admitted, ticked

from tfx_edge.release.health import MAX_REPORT_BYTES, Counts, enrol, read_health
from tfx_edge.release.keys import load_keyring
from tfx_edge.release.policy import set_policy
from tfx_edge.release.status import status
from tfx_edge.schemas import ChannelPolicy, DeviceInfo, EdgeError, Keyring, PublicKey


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path).create("canary", policies=POLICIES)


def health_folder(fleet: Fleet) -> Path:
    return fleet.folder / "channels" / "canary" / "health"


def dropped(fleet: Fleet, path: str, content: bytes) -> Path:
    file = health_folder(fleet) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def refusals(fleet: Fleet) -> dict[str, str]:
    """Why files count for nothing, by their paths below health/."""
    return {path.removeprefix("canary/health/"): why for path, why in read_health(fleet.open()).refused.items()}


def test_the_latest_word_of_each_device_counts(fleet):
    one = fleet.publish(plain_bundle(1)).release
    first, second = admitted(one, 2)
    for device, word in ((first, "failed"), (first, "healthy"), (second, "healthy"), (second, "failed")):
        fleet.report(one, device, word)
    health = read_health(fleet.open())
    assert health.counts(1) == Counts(healthy=1, failed=1) and not health.refused
    assert {device: report.status for device, report in health.reports[1].items()} == {first: "healthy", second: "failed"}


def test_the_latest_is_told_by_the_sequence_not_by_the_name_in_the_list(fleet):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    for _ in range(8):
        fleet.report(one, device, "failed")
    fleet.report(one, device, "failed")  # 9.json, which the list has after 10.json
    fleet.report(one, device, "healthy")
    assert read_health(fleet.open()).counts(1) == Counts(healthy=1)


def test_a_replayed_report_is_older_than_the_one_that_is_there(fleet):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    old = fleet.report(one, device, "healthy")
    content = old.read_bytes()
    fleet.report(one, device, "failed")
    dropped(fleet, f"{device}/9.json", content)
    assert read_health(fleet.open()).counts(1) == Counts(failed=1)
    assert refusals(fleet) == {f"{device}/9.json": "report 1 of the device; expected it in a file of that number"}


def test_each_release_has_its_own_reports(fleet):
    one, two = fleet.publish(plain_bundle(1)).release, fleet.publish(plain_bundle(2)).release
    fleet.report(one, admitted(one, 1)[0], "healthy")
    fleet.report(two, admitted(two, 1)[0], "failed")
    health = read_health(fleet.open())
    assert (health.counts(1), health.counts(2), health.counts(3)) == (Counts(healthy=1), Counts(failed=1), Counts())


def test_a_report_on_what_the_device_isnt_offered_counts_for_nothing(fleet):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    outside = next(i for i in (f"device-{i}" for i in range(1000)) if not one.admits(DeviceInfo(device_id=i, runtime="2.21.0")))
    bad = {
        fleet.report(one, outside): "release 1 isn't for this device",
        fleet.report(one, device, channel="beta"): "report on the channel beta",
        fleet.report(one, device, bundle="b" * 64): "release 1 has another bundle",
        fleet.report(one.model_copy(update={"number": 8}), device): "release 8 was never offered",
    }
    assert refusals(fleet) == {str(file.relative_to(health_folder(fleet))): why for file, why in bad.items()}
    assert read_health(fleet.open()).counts(1) == Counts()


def test_a_device_cant_speak_for_another(fleet):
    one = fleet.publish(plain_bundle(1)).release
    first, second = admitted(one, 2)
    own, word = fleet.report(one, first, "failed"), fleet.report(one, second, "failed").read_bytes()
    mine, others = json.loads(own.read_text()), json.loads(word)
    dropped(fleet, f"{first}/1.json", word)
    dropped(fleet, f"{second}/deeper/1.json", word)
    dropped(fleet, f"{first}/2.json", json.dumps({"report": others["report"], "enrolment": mine["enrolment"]}).encode())
    dropped(fleet, f"{second}/2.json", json.dumps({"report": mine["report"], "enrolment": others["enrolment"]}).encode())
    health = read_health(fleet.open())
    assert set(health.reports[1]) == {second}
    assert len(health.refused) == 4
    assert "expected the folder's device in both" in health.refused[f"canary/health/{first}/1.json"]
    assert "isn't signed by the enrolled device's key" in health.refused[f"canary/health/{first}/2.json"]


def test_a_device_cant_say_that_it_is_another(fleet):
    one = fleet.publish(plain_bundle(1)).release
    first, second = admitted(one, 2)
    fleet.report(one, first, "failed", device=DeviceInfo(device_id=second, runtime="2.21.0"))
    assert read_health(fleet.open()).counts(1) == Counts()
    [why] = refusals(fleet).values()
    assert why == f"report of {second}, enrolment of {first}; expected the folder's device in both"


def test_a_device_of_another_fleet_counts_for_nothing(fleet, tmp_path):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    other = Fleet(tmp_path / "other").create("canary", policies=POLICIES)
    dropped(fleet, f"{device}/1.json", other.report(other.publish(plain_bundle(1)).release, device).read_bytes())
    assert refusals(fleet) == {f"{device}/1.json": "the enrolment isn't signed by a fleet key"}


@pytest.mark.parametrize("part", ["report", "enrolment"])
def test_a_report_that_was_changed_counts_for_nothing(fleet, part):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    file = fleet.report(one, device, "failed")
    document = json.loads(file.read_text())
    payload = base64.b64decode(document[part]["payload"]).replace(b'"failed"', b'"healthy"').replace(b'"keytype"', b' "keytype"')
    document[part]["payload"] = base64.b64encode(payload).decode()
    file.write_text(json.dumps(document))
    [why] = refusals(fleet).values()
    assert (
        why
        == {"report": "the report isn't signed by the enrolled device's key", "enrolment": "the enrolment isn't signed by a fleet key"}[
            part
        ]
    )


def test_an_envelope_of_the_one_kind_isnt_taken_for_the_other(fleet):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    file = fleet.report(one, device)
    document = json.loads(file.read_text())
    file.write_text(json.dumps({"report": document["enrolment"], "enrolment": document["enrolment"]}))
    [why] = refusals(fleet).values()
    assert "an envelope of 'application/vnd.tfx-edge.enrolment+json'; expected application/vnd.tfx-edge.health+json" in why


def test_a_revoked_devices_reports_no_longer_count(fleet):
    one = fleet.publish(plain_bundle(1)).release
    first, second = admitted(one, 2)
    fleet.report(one, first, "failed")
    fleet.report(one, second)
    policy = fleet.open().policy.model_copy(update={"revoked_devices": (first,)})
    set_policy(fleet.storage, "canary", policy, fleet.keyring, now=fleet.now)
    assert read_health(fleet.open()).counts(1) == Counts(healthy=1)
    assert list(refusals(fleet).values()) == [f"device {first} is revoked"]


def test_without_fleet_keys_nobody_counts(fleet):
    one = fleet.publish(plain_bundle(1)).release
    fleet.report(one, admitted(one, 1)[0])
    set_policy(fleet.storage, "canary", ChannelPolicy(), fleet.keyring, now=fleet.now)
    assert list(refusals(fleet).values()) == ["the policy has no fleet keys, which vouch for devices"]


def test_rubbish_among_the_reports_is_named_and_stops_nothing(fleet):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    fleet.report(one, device)
    dropped(fleet, "x/1.json", b"{")
    dropped(fleet, "x/2.json", b" " * (MAX_REPORT_BYTES + 1))
    dropped(fleet, "x/3.json", b'{"report": {}, "enrolment": {"payload": 3}}')
    dropped(fleet, "x/4.json", b"[" * 60_000)
    dropped(fleet, "5.json", b"{}")
    folder = health_folder(fleet)
    os.mkfifo(folder / "x" / "pipe.json")
    (folder / "x" / "nowhere.json").symlink_to("nowhere")
    (folder / "x" / "round.json").symlink_to("round.json")
    (folder / os.fsdecode(b"\xff.json")).write_bytes(b"{}")
    with (folder / "x" / "huge.json").open("wb") as huge:
        huge.truncate(2**40)  # takes no room, and would take all memory if it were read
    health = read_health(fleet.open())
    assert health.counts(1) == Counts(healthy=1) and len(health.refused) == 10
    assert all(why and "\n" not in why for why in health.refused.values())
    assert "larger than" in health.refused["canary/health/x/huge.json"]
    assert ticked(fleet, "canary") == []
    assert len(json.loads(status(fleet.storage, "canary", fleet.now).to_json())["refused_reports"]) == 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
ENVELOPE = st.fixed_dictionaries(
    {"payload": st.text(max_size=12) | JSON, "payloadType": st.text(max_size=8) | JSON},
    optional={"signatures": st.lists(st.fixed_dictionaries({"keyid": st.text(max_size=4) | JSON, "sig": st.text(max_size=12) | JSON}), max_size=2) | JSON},
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80) | JSON | st.fixed_dictionaries({"report": ENVELOPE | JSON, "enrolment": ENVELOPE | JSON}))
def test_no_content_of_a_file_breaks_the_reading(fleet, content):
    dropped(fleet, "x/1.json", content if isinstance(content, bytes) else json.dumps(content).encode())
    assert list(refusals(fleet)) == ["x/1.json"]


def test_a_tick_clears_away_reports_that_newer_ones_replaced_or_whose_release_is_gone(fleet):
    one = fleet.publish(plain_bundle(1)).release
    [device] = admitted(one, 1)
    files = [fleet.report(one, device) for _ in range(3)]
    rubbish = dropped(fleet, "x/1.json", b"{")
    ticked(fleet, "canary")
    assert [file.exists() for file in files] == [False, False, True]
    set_policy(fleet.storage, "canary", ChannelPolicy(fleet_keys=fleet.open().policy.fleet_keys), fleet.keyring, now=fleet.now)
    fleet.publish(plain_bundle(2))
    ticked(fleet, "canary")
    assert not files[2].exists()
    assert rubbish.exists(), "what isn't understood is for people to look at"


def test_a_device_is_enrolled_by_a_fleet_key_alone(fleet):
    key = PublicKey(public="0" * 63 + "1")
    fleet_keys = fleet.open().policy.fleet_keys
    document = enrol("gateway-17", key, fleet.keyring, fleet_keys)
    assert json.loads(base64.b64decode(document["payload"])) == {"device_id": "gateway-17", "key": key.model_dump()}
    with pytest.raises(EdgeError, match="the keyring has none of the fleet keys"):
        enrol("gateway-17", key, Keyring(), fleet_keys)
    with pytest.raises(EdgeError, match="the keyring has none of the fleet keys"):
        enrol("gateway-17", key, load_keyring(fleet.folder / "keys" / "keyring.json"), [key])
    with pytest.raises(EdgeError, match="device_id: got '../up'"):
        enrol("../up", key, fleet.keyring, fleet_keys)

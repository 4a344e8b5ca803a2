"""Health reports: what is reported, that others can verify it, and that no report ever stands in the way of a model."""

import base64
import json
import stat
from datetime import datetime, timezone

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from device_client import client, serving, without_proxies
from release_channels import Fleet, bundle, failing_bundle

from tfx_edge.release.health import read_health


@pytest.fixture
def fleet(tmp_path) -> Fleet:
    return Fleet(tmp_path, now=datetime.now(timezone.utc).replace(microsecond=0)).create("canary")


def dropped(fleet: Fleet) -> list[dict]:
    """Reports in the channel's folder, in the order of their sequence."""
    files = sorted((fleet.folder / "channels/canary/health").rglob("*.json"), key=lambda file: int(file.stem))
    return [json.loads(file.read_text()) for file in files]


def opened(envelope: dict, public: str) -> dict:
    """Payload of a DSSE envelope, verified by the text of its specification."""
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    [signature] = envelope["signatures"]
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(base64.b64decode(signature["sig"]), signed)
    return json.loads(payload)


def test_a_report_is_signed_by_the_device_and_the_device_vouched_for_by_the_fleet(fleet) -> None:
    device = client(fleet, region="eu")
    identity = device.enrol(fleet)
    assert stat.S_IMODE((device.state / "key.pem").stat().st_mode) == 0o600
    release = fleet.publish(bundle(1)).release
    device.update()
    [document] = dropped(fleet)
    fleet_key = fleet.open().policy.fleet_keys[0].public
    enrolment = opened(document["enrolment"], fleet_key)
    assert enrolment == json.loads(identity.to_json())
    report = opened(document["report"], enrolment["key"]["public"])
    assert report["status"] == "healthy" and report["reason"] == "" and report["channel"] == "canary"
    assert (report["release"], report["bundle"]) == (1, release.bundle)
    assert report["device"] == {"device_id": "device-1", "target": "litert-cpu", "runtime": "2.21.0", "region": "eu"}
    with pytest.raises(InvalidSignature):
        opened(document["report"], fleet_key)
    device.update()
    assert len(dropped(fleet)) == 1  # said once


def test_the_channel_counts_what_devices_report(fleet) -> None:
    device = client(fleet)
    device.enrol(fleet)
    fleet.publish(bundle(1))
    device.update()
    assert (read_health(fleet.open()).counts(1).healthy, read_health(fleet.open()).counts(1).failed) == (1, 0)
    fleet.publish(failing_bundle(2))
    device.update(2)
    device.update(2)
    assert len(dropped(fleet)) == 2
    health = read_health(fleet.open())
    assert health.counts(2).failed == 1 and not health.refused
    assert health.reports[2]["device-1"].reason.startswith("self-test FAILED: output 'y' differs by up to ")


def test_without_an_enrolment_nothing_is_reported_and_with_one_what_runs_is(fleet) -> None:
    fleet.publish(bundle(1))
    device = client(fleet)
    device.update()
    assert dropped(fleet) == [] and "enrolment.json: No such file" in device.status().reports
    device.enrol(fleet)
    device.update()
    assert len(dropped(fleet)) == 1 and device.status().reports.startswith("sent to ")


@pytest.mark.parametrize("what", ["other device", "damaged", "key gone"])
def test_an_enrolment_that_does_not_fit_is_told_and_stops_no_update(fleet, what) -> None:
    device = client(fleet)
    device.enrol(fleet)
    fleet.publish(bundle(1))
    enrolment = device.state / "enrolment.json"
    if what == "other device":
        other = client(fleet, "device-2")
        other.enrol(fleet)
        enrolment.write_bytes((other.state / "enrolment.json").read_bytes())
    elif what == "damaged":
        enrolment.write_text('{"payload": "?"}')
    else:
        (device.state / "key.pem").unlink()
    assert "updated to release 1" in device.update()
    assert dropped(fleet) == [] and device.status().reports.startswith(f"enrolment {enrolment}: ")


def test_a_damaged_key_stops_no_update(fleet) -> None:
    device = client(fleet)
    device.enrol(fleet)
    (device.state / "key.pem").write_text("no key")
    fleet.publish(bundle(1))
    assert "updated to release 1" in device.update()
    assert "key.pem" in device.status().reports and "enrol the device anew" in device.expect(1, "identity")


def test_reports_wait_for_a_place_that_cannot_be_reached_and_come_in_order(fleet, tmp_path) -> None:
    place = tmp_path / "stick" / "health"
    device = client(fleet, health=str(place))
    device.enrol(fleet)
    fleet.publish(bundle(1))
    assert "updated to release 1" in device.update()
    fleet.publish(failing_bundle(2))
    device.update(2)
    assert device.status().waiting_reports == 2 and "stick: no such folder" in device.expect(1, "report")
    place.parent.mkdir()
    device.expect(0, "report")
    files = sorted((place / "device-1").glob("*.json"), key=lambda file: int(file.stem))
    said = [json.loads(base64.b64decode(json.loads(file.read_text())["report"]["payload"])) for file in files]
    assert [(report["release"], report["sequence"]) for report in said] == [(1, int(files[0].stem)), (2, int(files[1].stem))]
    assert device.status().waiting_reports == 0


def test_over_http_reports_are_put_and_kept_while_the_server_refuses(fleet) -> None:
    fleet.publish(bundle(1))
    with serving(fleet.folder / "channels/canary") as server:
        device = client(fleet, source=server.url)
        device.enrol(fleet)
        assert "no place to report to" in device.status().reports
        device.settings["health"] = f"{server.url}/drop"
        server.answer = lambda path: 500 if path.startswith("/drop") else None
        assert "updated to release 1" in device.update(env=without_proxies())
        assert not server.uploads and device.status().waiting_reports == 1
        server.answer = lambda path: None
        device.update(env=without_proxies())
    [(path, content)] = server.uploads.items()
    assert path.startswith("/drop/device-1/") and b"payloadType" in content


def test_a_device_that_lost_its_state_goes_on_above_what_it_said_before(fleet) -> None:
    device = client(fleet)
    device.enrol(fleet)
    fleet.publish(bundle(1))
    device.update()
    (device.state / "state.json").write_text("damaged")
    fleet.publish(bundle(2))
    device.update()
    assert len(dropped(fleet)) == 3  # none has the number of one before
    assert read_health(fleet.open()).reports[2]["device-1"].status == "healthy"

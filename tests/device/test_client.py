"""What a device does with what its channel offers."""

import json
import subprocess
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from device_client import Client, client, device_python
from release_channels import Fleet, bundle, failing_bundle, flatbuffer, manifest
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.release.rollback import rollback
from tfx_edge.schemas import ChannelPolicy, Cohort, RolloutStep
from tfx_edge.schemas.release import rollout_position


@pytest.fixture
def fleet(tmp_path) -> Fleet:
    return Fleet(tmp_path, now=datetime.now(timezone.utc).replace(microsecond=0)).create("canary")


def runs(device: Client) -> bytes:
    """The flatbuffer that an application gets."""
    return (device.current / "tflite").read_bytes()


def crashing_flatbuffer() -> bytes:
    """A branch that is its own graph: LiteRT follows it until the stack ends."""
    x, y = Tensor("x", "float32", (1, 4)), Tensor("y", "float32", (1, 4))
    options = schema.IfOptionsT()
    options.thenSubgraphIndex = options.elseSubgraphIndex = 0
    which = Tensor("which", "bool", (1,), value=np.array([True]))
    return pack([Graph("serving_default", (x,), (y,), (Op("IF", (which, x), (y,), options),))])


def test_a_fresh_device_installs_then_is_up_to_date_then_updates_and_keeps_the_last_good_one(fleet) -> None:
    device = client(fleet)
    assert "no model yet" in device.expect(1, "current")
    assert "nothing is offered" in device.update()
    fleet.publish(bundle(1))
    assert device.update() == "updated to release 1\n"
    assert runs(device) == flatbuffer(1)
    before = sorted(device.state.rglob("*"))
    assert device.update() == "release 1 runs, nothing newer is offered\n"
    assert sorted(device.state.rglob("*")) == before
    for seed in (2, 3):
        fleet.publish(bundle(seed))
        assert device.update() == f"updated to release {seed} from release {seed - 1}\n"
        assert runs(device) == flatbuffer(seed)
    status = device.status()
    assert (status.release, status.versions, status.failed) == (3, (3, 2), ())
    assert device.expect(0, "current").strip() == status.folder == str(device.current.resolve())
    assert not list((device.state / "downloads").iterdir()) and not list(device.state.rglob(".partial-*"))


def test_a_channel_of_another_name_is_refused_even_where_its_keys_are_trusted(fleet) -> None:
    fleet.publish(bundle(1))
    device = client(fleet)
    device.settings["channel"] = "stable"
    assert "it is the channel 'canary', this device follows 'stable'" in device.update(1)
    assert not device.current.exists()


def test_a_channel_of_other_keys_is_refused(fleet) -> None:
    fleet.create("beta").publish(bundle(2), "beta")
    fleet.publish(bundle(1))
    device = client(fleet)
    device.update()
    device.settings["source"] = str(fleet.folder / "channels" / "beta")
    assert "not signed by the channel's keys" in device.update(1)
    assert runs(device) == flatbuffer(1)


@pytest.mark.parametrize(
    ("cohort", "admitted"),
    [
        (Cohort(targets=("tflm",)), False),
        (Cohort(regions=("eu",)), True),
        (Cohort(regions=("us",)), False),
        (Cohort(minimum_runtime="2.10"), False),
        (Cohort(below_runtime="2.10"), True),
    ],
)
def test_only_devices_of_the_cohort_take_a_release(fleet, cohort, admitted) -> None:
    fleet.publish(bundle(1), cohort=cohort)
    device = client(fleet, region="eu", runtime="2.9.0")
    assert ("updated to release 1" if admitted else "nothing is offered") in device.update()
    assert device.current.exists() == admitted


def test_a_release_comes_to_its_share_of_the_devices(tmp_path) -> None:
    policy = ChannelPolicy(steps=(RolloutStep(share=0.5), RolloutStep(share=1)))
    fleet = Fleet(tmp_path).create("canary", policies={"canary": policy})
    published = bundle(1)
    fleet.publish(published)
    places = {f"device-{n}": rollout_position(published.digest, f"device-{n}") for n in range(20)}
    first, last = min(places, key=places.__getitem__), max(places, key=places.__getitem__)
    assert places[first] < 0.5 <= places[last]
    assert "updated" in client(fleet, first).update()
    assert "nothing is offered" in client(fleet, last).update()


def test_an_older_runtime_keeps_what_it_can_run(fleet) -> None:
    fleet.publish(bundle(1, minimum_runtime="2.5.0"))
    fleet.publish(bundle(2, minimum_runtime="2.14.0"))
    device = client(fleet, runtime="2.9.0")
    assert "updated to release 1" in device.update()
    assert runs(device) == flatbuffer(1)


def test_a_model_that_fails_its_self_test_is_not_taken_and_not_downloaded_again(fleet) -> None:
    device = client(fleet)
    fleet.publish(bundle(1))
    device.update()
    bad = fleet.publish(failing_bundle(2)).release
    said = device.update(2)
    assert said.startswith("release 2 refused: self-test FAILED: output 'y' differs by up to ") and "release 1 is kept" in said
    assert runs(device) == flatbuffer(1)
    for file in bad.files:
        (fleet.folder / "channels/canary/targets" / bad.target_path(file)).parent.rename(fleet.folder / f"gone-{file.size_bytes}")
        break
    assert "it failed here before and isn't tried again" in device.update(2)
    status = device.status()
    assert (status.release, status.versions, [verdict.release for verdict in status.failed]) == (1, (1,), [2])
    fleet.publish(bundle(3))
    assert "updated to release 3 from release 1" in device.update()


def test_after_a_change_of_the_runtime_a_failed_model_is_tried_again(fleet) -> None:
    fleet.publish(failing_bundle(2))
    device = client(fleet, runtime="2.9.0")
    device.update(2)
    assert "isn't tried again" in device.update(2)
    device.settings["runtime"] = "2.10.0"
    said = device.update(2)
    assert "self-test FAILED" in said and "isn't tried again" not in said


def test_a_model_that_crashes_or_hangs_litert_fails_and_the_client_goes_on(fleet) -> None:
    fleet.publish(bundle(1))
    device = client(fleet)
    device.update()
    fleet.publish(bundle(2))
    device.settings["selftest_seconds"] = 0.05
    for count in (1, 2):
        said = device.update(1)
        assert f"release 2: self-test took longer than 0.05 s; it is tried again, {count} of 3 times" in said
        assert runs(device) == flatbuffer(1) and not device.status().failed
    assert "self-test took longer than 0.05 s, 3 times; release 1 is kept" in device.update(2)
    device.settings["selftest_seconds"] = 60
    content = crashing_flatbuffer()
    fleet.publish(bundle(3).with_file("tflite", content).with_file("edge/manifest.json", manifest(content).to_json().encode()))
    assert device.update(2) == "release 3 refused: self-test crashed: SIGSEGV; release 1 is kept\n"


@pytest.mark.parametrize(("targets", "taken"), [((), True), (("ethos-u65", "ethos-u55"), True), (("tflm",), False)])
def test_a_bundle_for_other_targets_is_refused(fleet, targets, taken) -> None:
    fleet.publish(bundle(1, targets=targets))
    device = client(fleet, target="ethos-u55")
    said = device.update(0 if taken else 2)
    assert taken or "the bundle is for tflm, the device's target is ethos-u55; there is none to keep" in said


def test_a_manifest_that_says_more_than_the_client_knows_is_fine_and_one_that_does_not_fit_is_not(fleet) -> None:
    device = client(fleet)
    made = bundle(1)
    newer = {**json.loads(made.files["edge/manifest.json"]), "of_the_future": {"a": 1}}
    fleet.publish(made.with_file("edge/manifest.json", json.dumps(newer).encode()))
    assert "updated to release 1" in device.update()
    fleet.publish(bundle(2).with_file("edge/manifest.json", bundle(3).files["edge/manifest.json"]))
    assert "release 2 refused: edge/manifest.json is of a flatbuffer with sha256" in device.update(2)
    fleet.publish(bundle(3).with_file("edge/manifest.json", bundle(3, minimum_runtime="2.99").files["edge/manifest.json"]))
    assert "release 3 refused: the model needs TensorFlow Lite 2.99, the device has 2.21.0" in device.update(2)
    assert runs(device) == flatbuffer(1)


def test_a_release_too_large_for_the_device_is_refused_until_the_setting_changes(fleet) -> None:
    fleet.publish(bundle(1))
    device = client(fleet, max_bundle_bytes=100)
    assert "bytes, this device takes 100; there is none to keep" in device.update(2)
    assert not (device.state / "downloads").exists()
    del device.settings["max_bundle_bytes"]
    assert "updated to release 1" in device.update()


def test_a_rollback_comes_as_a_higher_release_and_what_it_takes_back_leaves_the_device(fleet) -> None:
    device = client(fleet)
    for seed in (1, 2):
        fleet.publish(bundle(seed))
        device.update()
    rollback(fleet.storage, "canary", fleet.keyring, reason="wrong", now=fleet.now, who="tester")
    assert "updated to release 3 from release 2" in device.update()
    assert runs(device) == flatbuffer(1) and device.status().versions == (3, 1)


def test_a_frozen_channel_is_told_and_the_model_goes_on_running(tmp_path) -> None:
    fleet = Fleet(tmp_path, now=datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=60))
    fleet.create("canary").publish(bundle(1), now=datetime.now(timezone.utc))
    device = client(fleet)
    device.update()
    fleet.publish(bundle(2))  # signed two months ago: timestamp and snapshot have ended
    said = device.update(1)
    assert "the channel looks frozen, or this device's clock is wrong" in said and "release 1 runs" in said
    assert runs(device) == flatbuffer(1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"root": "nowhere.json"}, "nowhere.json: No such file"),
        ({"root": "device.json"}, "expected a channel's root.json, signed by its own keys"),
        ({"source": "nowhere"}, "nowhere/metadata/timestamp.json: no such file"),
        ({"source": "http://127.0.0.1:9"}, "channel canary at http://127.0.0.1:9"),
        ({"device_id": "a/b"}, "DeviceConfig.device_id: got 'a/b'"),
        ({"device_id": "a/b"}, "device.json: DeviceConfig"),
        ({"source": "ftp://models.example/canary"}, "source is ftp://models.example/canary; expected a folder, or http:// or https://"),
        ({"health": "gs://reports"}, "health is gs://reports"),
        ({"state": "root.json"}, "root.json"),
    ],
)
def test_what_a_user_can_mend_is_one_line(fleet, change, text) -> None:
    device = client(fleet)
    device.settings |= change
    assert text in device.update(1)


def test_a_wrong_command_line_is_status_1_since_2_means_a_failed_model(fleet) -> None:
    device = client(fleet)
    assert "invalid choice: 'upgrade'" in device.expect(1, "upgrade")
    assert device.run("--help").returncode == 0
    device.command()
    (device.folder / "device.json").write_text("{")
    done = subprocess.run([device_python(), "-m", "tfx_edge.device", str(device.folder / "device.json")], capture_output=True, text=True)
    assert (
        done.returncode == 1
        and done.stderr.startswith(f"error: {device.folder / 'device.json'}: DeviceConfig: ")
        and len(done.stderr.splitlines()) == 1
    )


def test_status_says_what_runs(fleet) -> None:
    fleet.publish(bundle(1))
    device = client(fleet, region="eu")
    assert "runs     no model" in device.run("status").stdout
    device.update()
    lines = device.run("status").stdout.splitlines()
    assert lines[0].startswith("device   device-1, litert-cpu, TensorFlow Lite 2.21.0, region eu")
    assert lines[2] == f"runs     release 1 from {device.current.resolve()}"
    assert lines[4].endswith("updated to release 1") and "enrolment.json: No such file" in lines[5]


def test_an_application_asks_for_the_path_in_python(fleet) -> None:
    fleet.publish(bundle(1))
    device = client(fleet)
    device.command()
    code = (
        "from pathlib import Path; from tfx_edge.device import Device; from tfx_edge.device.__main__ import load_config; "
        f"d = Device(load_config(Path({str(device.folder / 'device.json')!r}))); o = d.update(); print(o.kind, o.release, d.current().name); "
        "import sys; print([m for m in ('tensorflow', 'tfx', 'click', 'ai_edge_litert') if m in sys.modules])"
    )
    done = subprocess.run([device_python(), "-c", code], capture_output=True, text=True, cwd="/")
    assert done.stdout.splitlines() == [f"updated 1 1-{bundle(1).digest[:12]}", "[]"], done.stderr

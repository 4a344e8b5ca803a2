"""`tfx-edge channel` as people and schedules run it, on channels in a folder."""

import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from release_channels import Fleet, bundle, contents, exported

from tfx_edge.cli import cli
from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import EdgeError, GateConfig, GateReport, MetricComparison, Threshold


def report(file: Path, digest: str, *reasons: str) -> Path:
    metric = MetricComparison(metric="AUC", slice="Overall", examples=9, baseline=0.98, candidate=0.97, difference=-0.01)
    document = GateReport(
        blessed=not reasons,
        reasons=reasons,
        model_digest=digest,
        config=GateConfig(label_key="y", thresholds=(Threshold(metric="AUC", lower_bound=0.5),)),
        metrics=(metric,),
        size_bytes=10,
        gzip_bytes=9,
        runtime="LiteRT",
    )
    file.write_text(document.to_json())
    return file


class Shop:
    """A folder with channels and keys, and models to publish."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.channels, self.keyring = folder, str(folder / "channels"), str(folder / "keys" / "keyring.json")

    def run(self, command: str, *arguments: object, keyring: bool = True) -> Result:
        given = [command, *map(str, arguments), *(["--keyring", self.keyring] if keyring else [])]
        return CliRunner().invoke(cli, ["channel", *given], catch_exceptions=True)

    def did(self, command: str, *arguments: object, keyring: bool = True) -> str:
        result = self.run(command, *arguments, keyring=keyring)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.output

    def refused(self, command: str, *arguments: object, keyring: bool = True) -> str:
        """The one line of an error."""
        result = self.run(command, *arguments, keyring=keyring)
        assert isinstance(result.exception, EdgeError), result.output + repr(result.exception)
        assert "\n" not in str(result.exception)
        return str(result.exception)

    def publish(self, seed: int, name: str = "canary", *options: object) -> str:
        model = exported(self.folder / f"model-{seed}", bundle(seed))
        judged = report(self.folder / f"report-{seed}.json", bundle(seed).manifest.digest)
        return self.did("publish", self.channels, name, model, "--report", judged, *options)

    def open(self, name: str = "canary"):
        return open_channel(LocalStorage(self.channels), name)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.did("init", made.channels)
    return made


def test_a_model_goes_from_init_to_devices_and_back_with_six_commands(shop: Shop) -> None:
    assert "canary: release 1 published, for 100% of the devices" in shop.publish(1)
    assert "is on offer already" in shop.publish(1)
    shop.publish(2)
    said = shop.did("promote", shop.channels, "canary", "beta", "--force", "--reason", "in a hurry")
    assert said == "beta: release 1 promoted from canary, for 100% of the devices that it is for\n"
    assert "canary: release 3 takes back release 2" in shop.did("rollback", shop.channels, "canary", "--reason", "wrong labels")
    assert "beta: stopped; there is no release before it" in shop.did("stop", shop.channels, "beta", "--reason", "crashes")
    log = shop.did("log", shop.channels, "canary", keyring=False)
    for line in ("publish release 2", "rollback release 3", "(takes back 2)", "reason: wrong labels", "AUC 0.9700, float 0.9800"):
        assert line in log
    for name in ("canary", "beta", "stable"):
        verify_files(shop.open(name))


def test_channels_promote_to_the_next_of_those_that_were_made(shop: Shop) -> None:
    assert [shop.open(name).policy.promote_to for name in ("canary", "beta", "stable")] == ["beta", "stable", None]
    assert "canary: the channel is there already" in shop.refused("init", shop.channels, "canary")


def test_what_the_gate_refused_isnt_published_and_the_exit_status_says_so(shop: Shop, tmp_path: Path) -> None:
    model = exported(tmp_path / "model", bundle(1))
    before = contents(tmp_path / "channels")
    refused = report(tmp_path / "no.json", bundle(1).manifest.digest, "AUC: 0.4 is below 0.5")
    result = shop.run("publish", shop.channels, "canary", model, "--report", refused)
    assert result.exit_code == 2 and "AUC: 0.4 is below 0.5" in result.output
    other = report(tmp_path / "other.json", bundle(2).manifest.digest)
    assert "judged a flatbuffer with sha256" in shop.refused("publish", shop.channels, "canary", model, "--report", other)
    assert shop.run("publish", shop.channels, "canary", model).exit_code == 2, "no report"
    assert contents(tmp_path / "channels") == before


def test_rules_hold_a_promotion_back_with_exit_status_2(shop: Shop) -> None:
    shop.publish(1)
    result = shop.run("promote", shop.channels, "canary", "beta")
    assert result.exit_code == 2 and "needs 24.0 hours more, 1 more healthy devices" in result.output


def test_status_shows_what_is_offered_what_it_waits_for_and_when_signatures_end(shop: Shop) -> None:
    shop.publish(1, "canary", "--region", "eu")
    shown = shop.did("status", shop.channels, "canary", keyring=False)
    for text in ("canary: verified; promotes to beta", '{"regions":["eu"]}', "hold: needs", "timestamp  version 2, until"):
        assert text in shown
    document = json.loads(shop.did("status", shop.channels, "canary", "--json", keyring=False))
    assert document["releases"][0]["number"] == 1 and not any(role["expired"] for role in document["roles"])


def test_status_of_a_tampered_channel_is_an_error_that_names_the_file(shop: Shop, tmp_path: Path) -> None:
    shop.publish(1)
    [model] = (tmp_path / "channels" / "canary" / "targets" / "bundles").glob("*/*.tflite")
    model.write_bytes(bundle(2).files["tflite"])
    assert str(model) in shop.refused("status", shop.channels, "canary", keyring=False)


def test_a_tick_takes_all_channels_and_fails_for_those_that_it_cant_handle(shop: Shop, tmp_path: Path) -> None:
    assert shop.did("tick", shop.channels) == "nothing is due\n"
    assert json.loads(shop.did("tick", shop.channels, "--json")) == []
    later = Fleet(tmp_path, now=datetime.now(timezone.utc) - timedelta(days=30)).create("old")
    assert later.open("old").expired(datetime.now(timezone.utc)) == ("snapshot", "timestamp")
    assert "old: renew: snapshot, timestamp" in shop.did("tick", shop.channels)
    (tmp_path / "channels" / "beta" / "metadata" / "timestamp.json").write_bytes(b"")
    result = shop.run("tick", shop.channels)
    assert result.exit_code == 1 and "beta: failed" in result.output
    empty = shop.refused("tick", tmp_path / "nowhere")
    assert "no channels; make them with `tfx-edge channel init`" in empty


def test_rules_are_printed_changed_and_printed_again(shop: Shop, tmp_path: Path) -> None:
    document = json.loads(shop.did("policy", shop.channels, "canary", keyring=False))
    document["steps"] = [{"share": 0.1}, {"share": 1}]
    (tmp_path / "policy.json").write_text(json.dumps(document))
    shop.did("policy", shop.channels, "canary", "--set", tmp_path / "policy.json")
    assert [step["share"] for step in json.loads(shop.did("policy", shop.channels, "canary", keyring=False))["steps"]] == [0.1, 1]
    assert "for 10% of the devices" in shop.publish(1)
    (tmp_path / "policy.json").write_text('{"steps": [{"share": 2}]}')
    assert "RolloutStep.share: got 2" in shop.refused("policy", shop.channels, "canary", "--set", tmp_path / "policy.json")


def test_old_releases_are_withdrawn(shop: Shop) -> None:
    assert shop.did("expire", shop.channels, "canary", "--older-than", "0") == "canary: nothing to withdraw\n"
    shop.publish(1)
    shop.publish(2)
    assert shop.did("expire", shop.channels, "canary", "--release", "1") == "canary: withdrawn: release 1; files go with the next change\n"
    assert "give one of them" in shop.refused("expire", shop.channels, "canary")


def test_a_key_is_rotated_in_one_go_and_the_old_one_signs_nothing_any_more(shop: Shop, tmp_path: Path) -> None:
    shop.publish(1)
    (before,) = shop.open().root.signed.roles["timestamp"].keyids
    said = shop.did("rotate-key", shop.channels, "canary", "--role", "timestamp", "--role", "snapshot", "--reason", "stolen")
    assert "root 2 is in force" in said and "canary-timestamp.pem: no longer a timestamp key of canary; destroy it" in said
    (after,) = shop.open().root.signed.roles["timestamp"].keyids
    assert before != after and before not in shop.open().timestamp.signatures
    (tmp_path / "keys" / "canary-timestamp.pem").unlink()
    shop.publish(2)
    assert shop.open().log.entries[2].reason == "stolen"


def test_root_keys_kept_apart_sign_a_draft_each_on_its_own_machine(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "online")
    machines = {name: tmp_path / name for name in ("ann", "bob")}
    public = {}
    for name, folder in machines.items():
        line = shop.did("key", folder / "root.pem", keyring=False).splitlines()[0]
        public[name] = line.removeprefix("public key ")
        (folder / "keyring.json").write_text(json.dumps({"root": [{"uri": "file2:root.pem"}]}))
    online = {}
    for role in ("targets", "snapshot", "timestamp"):
        line = shop.did("key", tmp_path / "online" / "keys" / f"{role}.pem", keyring=False).splitlines()[0]
        online[role] = line.removeprefix("public key ")
    keyring = {role: [{"uri": f"file2:{role}.pem"}] for role in online}
    Path(shop.keyring).write_text(json.dumps(keyring))
    draft = tmp_path / "root.json"
    options = [part for role, key in online.items() for part in (f"--{role}", key)]
    roots = ("--root", public["ann"], "--root", public["bob"], "--threshold", "2")
    shop.did("draft-root", draft, *roots, *options, keyring=False)
    assert "root: signed by 0 of the 2 keys" in shop.refused("init", shop.channels, "canary", "--root", draft)
    said = shop.did("sign", draft, "--keyring", machines["ann"] / "keyring.json", keyring=False)
    assert "signed; needs 1 more of the keys of its own" in said
    assert "root: signed by 1 of the 2 keys" in shop.refused("init", shop.channels, "canary", "--root", draft)
    assert "has all signatures" in shop.did("sign", draft, "--keyring", machines["bob"] / "keyring.json", keyring=False)
    shop.did("init", shop.channels, "canary", "--root", draft)
    shop.publish(1)

    # Bob's key is lost, Cleo takes his place: the old root's two keys can't be had any more, so the new root isn't accepted ...
    cleo = shop.did("key", tmp_path / "cleo" / "root.pem", keyring=False).splitlines()[0].removeprefix("public key ")
    (bobs,) = [key_id for key_id, key in shop.open().root.signed.keys.items() if key.keyval["public"] == public["bob"]]
    following = tmp_path / "2.root.json"
    shop.did("rotate-key", shop.channels, "canary", "--role", "root", "--add", cleo, "--revoke", bobs[:10], "--draft", following)
    (tmp_path / "cleo" / "keyring.json").write_text(json.dumps({"root": [{"uri": "file2:root.pem"}]}))
    previous = ("--previous", tmp_path / "online" / "channels" / "canary" / "metadata" / "1.root.json")
    for name in ("ann", "cleo"):
        said = shop.did("sign", following, "--keyring", tmp_path / name / "keyring.json", *previous, keyring=False)
    assert "needs 1 more of the keys of the root before it" in said
    assert "root: signed by 1 of the 2 keys" in shop.refused("apply", shop.channels, "canary", following)
    # ... and with Bob's it is.
    shop.did("sign", following, "--keyring", machines["bob"] / "keyring.json", *previous, keyring=False)
    shop.did("apply", shop.channels, "canary", following)
    assert shop.open().root.signed.version == 2
    assert shop.open().root.signed.roles["root"].threshold == 2


def test_a_device_is_enrolled_with_its_public_key(shop: Shop, tmp_path: Path) -> None:
    shop.did("enrol", shop.channels, "canary", "dev-1", "0" * 64, "-o", tmp_path / "dev-1.json")
    document = json.loads((tmp_path / "dev-1.json").read_text())
    assert document["payloadType"] == "application/vnd.tfx-edge.enrolment+json" and len(document["signatures"]) == 1
    assert "expected 64 hexadecimal digits" in shop.refused("enrol", shop.channels, "canary", "dev-1", "xyz", "-o", tmp_path / "x.json")
    assert "is there already" in shop.refused("enrol", shop.channels, "canary", "dev-1", "0" * 64, "-o", tmp_path / "dev-1.json")


def test_no_command_prints_a_private_key(shop: Shop, tmp_path: Path) -> None:
    secrets = {line for file in (tmp_path / "keys").glob("*.pem") for line in file.read_text().splitlines() if "-----" not in line}
    said = shop.publish(1) + shop.did("tick", shop.channels) + shop.did("log", shop.channels, "canary", "--json", keyring=False)
    said += shop.did("rotate-key", shop.channels, "canary", "--role", "targets")
    said += "".join(content.decode(errors="ignore") for content in contents(tmp_path / "channels").values())
    assert secrets and not any(secret in said for secret in secrets)


def test_an_error_is_one_line_on_standard_error_with_exit_status_1(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("tfx-edge"), "channel", "status", str(tmp_path), "canary"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and run.stdout == ""
    line = [line for line in run.stderr.splitlines() if "Warning" not in line and not line.startswith("  ")]
    assert line == [f"error: {tmp_path}/canary: no channel; make it with `tfx-edge channel init`"]

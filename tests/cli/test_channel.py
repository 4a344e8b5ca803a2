"""`tfx-edge channel` as people and schedules run it, on channels in a folder."""

import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from channel_shop import Shop, report
from release_channels import Fleet, bundle, contents, exported

from tfx_edge.release.channel import verify_files


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
    refused = report(tmp_path / "no.json", bundle(1), "AUC: 0.4 is below 0.5")
    result = shop.run("publish", shop.channels, "canary", model, "--report", refused)
    assert result.exit_code == 2 and "AUC: 0.4 is below 0.5" in result.output
    other = report(tmp_path / "other.json", bundle(2))
    assert "judged a flatbuffer with sha256" in shop.refused("publish", shop.channels, "canary", model, "--report", other)
    alone = report(tmp_path / "alone.json", bundle(1), files={})
    assert "judged the flatbuffer of" in shop.refused("publish", shop.channels, "canary", model, "--report", alone)
    good = report(tmp_path / "good.json", bundle(1))
    (model / "edge" / "golden.npz").write_bytes(bundle(2).files["edge/golden.npz"])
    assert "edge/golden.npz was changed after the gate's" in shop.refused("publish", shop.channels, "canary", model, "--report", good)
    assert shop.run("publish", shop.channels, "canary", model).exit_code == 2, "no report"
    assert contents(tmp_path / "channels") == before


def test_rules_hold_a_promotion_back_with_exit_status_2(shop: Shop) -> None:
    shop.publish(1)
    result = shop.run("promote", shop.channels, "canary", "beta")
    assert result.exit_code == 2 and "needs 24.0 hours more, 1 more healthy device" in result.output


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
    ended = shop.run("status", shop.channels, "old", keyring=False)
    assert ended.exit_code == 1 and "but devices refuse it: snapshot, timestamp expired; run `tfx-edge channel tick`" in ended.output
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


def test_an_error_is_one_line_on_standard_error_with_exit_status_1(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("tfx-edge"), "channel", "status", str(tmp_path), "canary"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and run.stdout == ""
    assert run.stderr == f"error: {tmp_path}/canary: no channel; make it with `tfx-edge channel init`\n"


def test_names_that_cant_be_or_come_twice_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert "channel '../evil': expected letters" in shop.refused("init", shop.channels, "../evil", "good")
    assert "a channel is named twice" in shop.refused("init", shop.channels, "good", "good")
    for command in (("publish", shop.channels, "../evil", "model", "--report", "r"), ("tick", shop.channels, "../evil")):
        assert "channel '../evil'" in shop.refused(*command)
    assert "channel '../evil'" in shop.refused("promote", shop.channels, "canary", "../evil")
    assert not list(tmp_path.iterdir())


def test_a_document_that_cant_be_read_is_named(shop: Shop, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    model = exported(tmp_path / "model", bundle(1))
    for command in (
        ("policy", shop.channels, "canary", "--set", bad),
        ("publish", shop.channels, "canary", model, "--report", bad),
        ("init", shop.channels, "other", "--policy", bad),
        ("init", shop.channels, "other", "--root", bad),
    ):
        assert shop.refused(*command).startswith(f"{bad}: ")


def test_the_name_of_a_file_that_a_device_dropped_cant_pass_for_a_line_of_status(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "channels" / "canary" / "health" / "dev" / "1\nstable: verified\x1b[2J.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    shown = shop.did("status", shop.channels, "canary", keyring=False)
    assert "dev/1\\nstable: verified\\x1b[2J.json: " in shown
    assert "stable: verified" not in shown.splitlines() and "\x1b" not in shown


def test_helps_of_all_commands_import_no_library_that_signs() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from tfx_edge.cli import cli; from tfx_edge.cli.channel import channel\n"
        "for name in channel.commands:\n"
        "    shown = CliRunner().invoke(cli, ['channel', name, '--help'])\n"
        "    assert shown.exit_code == 0 and f'Example: tfx-edge channel {name} ' in ' '.join(shown.output.split()), name\n"
        "print([m for m in ('securesystemslib', 'tuf', 'cryptography', 'tensorflow', 'tfx', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert run.stdout == "[]\n"

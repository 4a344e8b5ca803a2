"""docs/release_channels.md: its commands, run in its order on one machine, do what they say."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from channel_shop import report
from click.testing import CliRunner
from device_client import device_python
from release_channels import bundle, exported

from tfx_edge.cli import cli
from tfx_edge.release.channel import open_channel, verify_files
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas import ChannelPolicy, DeviceConfig, Keyring

GUIDE = (Path(__file__).parents[2] / "docs" / "release_channels.md").read_text()
PUBLIC_KEYS = {"ANN", "BOB", "CLEO", "DORA", "TARGETS", "SNAPSHOT", "TIMESTAMP"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


class Reader:
    """Someone who does what the guide says, in a folder of their own.

    Attributes:
        keys: public keys as `channel key` printed them, by the name that the guide gives them.
        ids: their ids, likewise.
        identity: the device's public key as it printed it.
    """

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.identity = ""

    def run(self, line: str) -> str:
        verb, *arguments = shlex.split(line)
        if verb == "cp":
            shutil.copy(*arguments)
            return ""
        if verb == "python":
            done = subprocess.run([device_python(), *arguments], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            if arguments[-1] == "identity":
                self.identity = json.loads(done.stdout)["key"]["public"]
            return done.stdout
        assert verb == "tfx-edge", line
        result = CliRunner().invoke(cli, [self.meant(argument) for argument in arguments])
        assert result.exit_code == 0, (line, result.output, result.exception)
        if arguments[:2] == ["channel", "key"]:
            file = Path(arguments[2])
            name = (file.parent.name if file.stem == "root" else file.stem).upper()
            self.keys[name], self.ids[f"{name}_ID"] = re.findall(r"[0-9a-f]{64}", result.output)
        return result.output

    def meant(self, argument: str) -> str:
        if argument in PUBLIC_KEYS:
            return self.keys[argument]
        return self.identity if argument == "PUBLIC_KEY" else self.ids.get(argument, argument)


def put_on_the_desk(tmp_path: Path) -> None:
    """What the guide takes for granted: a blessed model, and the JSON that it shows in the files that it names."""
    exported(tmp_path / "MODEL", bundle(1))
    (tmp_path / "REPORT").mkdir()
    report(tmp_path / "REPORT" / "report.json", bundle(1))
    device, _, _, online = blocks("json")
    (tmp_path / "device.json").write_text(device)
    for name in ("ANN", "BOB", "CLEO", "DORA"):
        (tmp_path / name).mkdir()
        [keyring] = re.findall(r'`(\{"root".*?\})`', GUIDE)
        (tmp_path / name / "keyring.json").write_text(keyring)
    (tmp_path / "ONLINE").mkdir()
    (tmp_path / "ONLINE" / "keyring.json").write_text(online)


def write_the_rules(reader: Reader) -> None:
    """The guide's rules over what `policy` prints, as it says, since they don't name the fleet's keys."""
    printed = json.loads(reader.run("tfx-edge channel policy CHANNELS canary"))
    Path("policy.json").write_text(json.dumps(printed | json.loads(blocks("json")[1])))


def test_every_command_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put_on_the_desk(tmp_path)
    reader = Reader()
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    said: dict[str, str] = {}
    for line in lines:
        if "--set policy.json" in line:
            write_the_rules(reader)
        if "channel rollback" in line:  # there must be a newer model to take back
            exported(tmp_path / "MODEL-2", bundle(2))
            judged = report(tmp_path / "report-2.json", bundle(2))
            reader.run(f"tfx-edge channel publish CHANNELS canary MODEL-2 --report {judged} --keyring KEYS/keyring.json")
        said[line] = reader.run(line)

    def told(part: str) -> str:
        [found] = (output for line, output in said.items() if part in line)
        return found

    assert "release 1 published" in told("channel publish") and "takes back release 2" in told("channel rollback")
    assert "beta: release 1 promoted from canary" in told("channel promote")
    assert (tmp_path / "state" / "current" / "tflite").read_bytes() == bundle(1).files["tflite"], "the device runs the model"
    for name, root in {"canary": 3, "beta": 1, "stable": 1, "pilot": 3}.items():
        channel = open_channel(LocalStorage(Path("CHANNELS")), name)
        verify_files(channel)
        assert channel.root.signed.version == root, name
    root = channel.root.signed
    assert root.roles["root"].threshold == 2 and reader.ids["DORA_ID"] in root.roles["root"].keyids
    assert reader.ids["CLEO_ID"] not in root.keys and reader.ids["TIMESTAMP_ID"] not in root.keys


def test_every_subcommand_is_in_the_guide() -> None:
    from tfx_edge.cli.channel import channel

    run = {shlex.split(line)[2] for block in blocks("bash") for line in block.splitlines() if line.startswith("tfx-edge channel ")}
    assert run == set(channel.commands)


def test_the_documents_of_the_guide_are_what_they_are_called() -> None:
    device, policy, fresh, online = blocks("json")
    assert DeviceConfig.from_json(device).channel == "canary"
    assert [step.share for step in ChannelPolicy.from_json(policy).steps] == [0.05, 1]
    assert not Keyring.from_json(fresh).targets and Keyring.from_json(online).targets


def test_the_scheduled_job_ticks_the_channels_that_it_mounts(tmp_path: Path) -> None:
    runner = CliRunner()
    keyring = str(tmp_path / "secrets" / "keyring.json")
    assert runner.invoke(cli, ["channel", "init", str(tmp_path / "channels"), "canary", "--keyring", keyring]).exit_code == 0
    [job] = map(yaml.safe_load, blocks("yaml"))
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    program, *arguments = container["command"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert program == "tfx-edge" and mounts == {"channels": "/channels", "keys": "/secrets"}
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)
    here = [str(tmp_path) + argument if argument.startswith("/") else argument for argument in arguments]
    assert runner.invoke(cli, here).output == "nothing is due\n"
    assert job["spec"]["concurrencyPolicy"] == "Forbid", "two ticks at once get in each other's way"

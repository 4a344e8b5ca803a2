"""Keys of channels on the command line: made, kept apart, rotated, lost."""

import json
from pathlib import Path

import pytest
from channel_shop import Shop
from release_channels import contents


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    made.did("init", made.channels)
    return made


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


def test_root_keys_that_were_taken_off_the_machine_sign_a_draft_where_they_are(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.did("init", shop.channels, "canary", "--root-keys", "3", "--root-threshold", "2")
    people = []
    for number in (1, 2, 3):
        people.append(tmp_path / f"stick-{number}")
        people[-1].mkdir()
        (tmp_path / "keys" / f"canary-root-{number}.pem").rename(people[-1] / "root.pem")
        (people[-1] / "keyring.json").write_text(json.dumps({"root": [{"uri": "file2:root.pem"}]}))
    keys = contents(tmp_path / "keys")
    said = shop.refused("rotate-key", shop.channels, "canary", "--role", "timestamp")
    assert "fewer than the 2 root keys that must sign; write a --draft" in said
    assert contents(tmp_path / "keys") == keys, "a key was made for nothing"

    draft = tmp_path / "2.root.json"
    shop.did("rotate-key", shop.channels, "canary", "--role", "timestamp", "--draft", draft)
    previous = ("--previous", tmp_path / "channels" / "canary" / "metadata" / "1.root.json")
    for folder in people[:2]:
        shop.did("sign", draft, "--keyring", folder / "keyring.json", *previous, keyring=False)
    (before,) = shop.open().root.signed.roles["timestamp"].keyids
    assert "canary-timestamp.pem: no longer a timestamp key" in shop.did("apply", shop.channels, "canary", draft)
    assert before not in shop.open().root.signed.roles["timestamp"].keyids
    shop.publish(1)


def test_a_draft_replaces_no_file_and_makes_no_key_for_nothing(shop: Shop, tmp_path: Path) -> None:
    draft = tmp_path / "2.root.json"
    draft.write_text("mine")
    keys = contents(tmp_path / "keys")
    assert "is there already" in shop.refused("rotate-key", shop.channels, "canary", "--role", "timestamp", "--draft", draft)
    assert draft.read_text() == "mine" and contents(tmp_path / "keys") == keys


def test_fewer_keys_than_before_must_sign_only_where_the_command_says_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.did("init", shop.channels, "canary", "--root-keys", "2", "--root-threshold", "2")
    one = shop.open().root.signed.roles["root"].keyids[0]
    rotate = ("rotate-key", shop.channels, "canary", "--role", "root")
    assert "root: has 2 keys; name those that go" in shop.refused(*rotate)
    assert "root: 1 keys would be left, 2 must sign" in shop.refused(*rotate, "--revoke", one)
    assert shop.open().root.signed.version == 1 and shop.open().root.signed.roles["root"].threshold == 2
    shop.did(*rotate, "--revoke", one, "--threshold", "1")
    assert shop.open().root.signed.roles["root"].threshold == 1

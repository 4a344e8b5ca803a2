"""Other keys for a channel: signed on several machines, with lost and stolen keys, and seen by a client that is in the middle of it all."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from release_channels import Fleet, contents, plain_bundle
from tuf.api.metadata import Metadata, Root

from tfx_edge.release.channel import verify_files
from tfx_edge.release.create import create_channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import generate_key, key_of, public_key_of
from tfx_edge.release.publish import publish
from tfx_edge.release.rekey import changed_keys
from tfx_edge.release.root import ROLES, RoleKeys, draft_next_root, draft_root, require_root_signed, sign_root
from tfx_edge.release.rotate import apply_root
from tfx_edge.schemas import Keyring
from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.keyring import KeyReference


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path).create("canary")
    fleet.publish(plain_bundle(1))
    return fleet


def new_key(fleet: Fleet, name: str) -> tuple[PublicKey, KeyReference]:
    file = fleet.folder / "keys" / f"{name}.pem"
    public = generate_key(file)
    return public, KeyReference(uri=f"file2:{file}", key_id=key_of(public).keyid)


def replaced(fleet: Fleet, roles: Sequence[str]) -> tuple[Metadata[Root], Keyring]:
    """A draft, not signed, with a new key for each role in place of its old one; and the keyring with the new ones besides."""
    root, keyring, keys = fleet.open().root, fleet.keyring, dict[str, RoleKeys]()
    for role in roles:
        public, reference = new_key(fleet, f"{role}-of-root-{root.signed.version + 1}")
        keys[role] = changed_keys(root.signed, role, add=[public], revoke=root.signed.roles[role].keyids)
        keyring = keyring.model_copy(update={role: (*getattr(keyring, role), reference)})
    return draft_next_root(root, keys, now=fleet.now, days=365), keyring


def without_old(fleet: Fleet, keyring: Keyring, roles: Sequence[str]) -> Keyring:
    known = fleet.open().root.signed.roles
    return keyring.model_copy(
        update={role: tuple(one for one in getattr(keyring, role) if one.key_id in known[role].keyids) for role in roles}
    )


@pytest.mark.parametrize("roles", [*((role,) for role in ROLES), ("snapshot", "timestamp"), ROLES])
def test_after_a_rotation_the_new_keys_alone_change_the_channel(fleet: Fleet, roles: tuple[str, ...]) -> None:
    old = fleet.keyring
    draft, keyring = replaced(fleet, roles)
    assert sign_root(draft, keyring, fleet.open().root) == (2 if "root" in roles else 1)
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now, who="tester")
    channel = fleet.open()
    verify_files(channel)
    entry = channel.log.entries[-1]
    assert (channel.root.signed.version, entry.action, entry.reason) == (
        2,
        "rotate-key",
        f"keys of {', '.join(r for r in ROLES if r in roles)}",
    )
    for metadata in (channel.targets, channel.snapshot, channel.timestamp):
        assert set(metadata.signatures) == set(channel.root.signed.roles[metadata.signed.type].keyids), "of the old keys nothing is left"
    if roles != ("root",):
        with pytest.raises(ChannelError, match="the keyring has none of its keys|signed by 0 of the 1 keys that it needs"):
            publish(fleet.storage, "canary", plain_bundle(2), old, now=fleet.now)
    assert publish(fleet.storage, "canary", plain_bundle(2), without_old(fleet, keyring, roles), now=fleet.now).release.number == 2


def test_a_draft_that_is_in_force_changes_nothing(fleet: Fleet) -> None:
    draft, keyring = replaced(fleet, ROLES)
    sign_root(draft, keyring, fleet.open().root)
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now)
    before = contents(fleet.folder)
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now + timedelta(days=1))
    assert contents(fleet.folder) == before


def test_a_root_is_signed_on_two_machines_and_neither_suffices(tmp_path: Path) -> None:
    """Two people with a key each; the channel's machine has neither."""
    machines = [Fleet(tmp_path / name) for name in ("ann", "ben", "server")]
    ann, ben, server = machines
    (ann_key, ann_ref), (ben_key, ben_ref) = new_key(ann, "root"), new_key(ben, "root")
    online = {role: new_key(server, role) for role in ("targets", "snapshot", "timestamp")}
    roles = {"root": RoleKeys((ann_key, ben_key), 2)} | {role: RoleKeys((public,)) for role, (public, _) in online.items()}
    file = tmp_path / "stick.json"
    file.write_bytes(draft_root(roles, now=server.now, days=365).to_bytes())
    keyring = Keyring(**{role: (reference,) for role, (_, reference) in online.items()})
    for reference in (ann_ref, ben_ref):
        root: Metadata[Root] = Metadata.from_bytes(file.read_bytes())
        with pytest.raises(ChannelError, match=r"root: signed by [01] of the 2 keys that it needs; the keyring lacks the private key of"):
            create_channel(server.storage, "canary", root, keyring, now=server.now)
        assert sign_root(root, Keyring(root=(reference,))) == 1
        file.write_bytes(root.to_bytes())
    create_channel(server.storage, "canary", Metadata.from_bytes(file.read_bytes()), keyring, now=server.now)
    verify_files(server.open())


def test_a_lost_root_key_is_replaced_by_those_that_are_left(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path).create("canary", root_keys=3, root_threshold=2)
    (fleet.folder / "keys" / "canary-root-2.pem").unlink()
    root = fleet.open().root
    lost = [reference.key_id for reference in fleet.keyring.root if "root-2" in reference.uri]
    public, reference = new_key(fleet, "new")
    keys = changed_keys(root.signed, "root", add=[public], revoke=lost)
    draft = draft_next_root(root, {"root": keys}, now=fleet.now, days=365)
    keyring = fleet.keyring.model_copy(update={"root": (*fleet.keyring.root, reference)})
    assert sign_root(draft, keyring, root) == 3
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now)
    assert fleet.open().root.signed.roles["root"].threshold == 2 and lost[0] not in fleet.open().root.signed.keys


def test_a_lost_online_key_is_replaced_without_it(fleet: Fleet) -> None:
    draft, keyring = replaced(fleet, ("timestamp",))
    (fleet.folder / "keys" / "canary-timestamp.pem").unlink()
    sign_root(draft, keyring, fleet.open().root)
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now)
    assert publish(fleet.storage, "canary", plain_bundle(2), keyring, now=fleet.now).changed


def test_too_few_signatures_a_skipped_version_an_expired_draft_or_a_key_that_is_missing_change_nothing(fleet: Fleet) -> None:
    draft, keyring = replaced(fleet, ("root", "timestamp"))
    root, before = fleet.open().root, contents(fleet.folder / "channels")

    def refused(candidate: Metadata[Root], held: Keyring, text: str) -> None:
        with pytest.raises(ChannelError, match=text):
            apply_root(fleet.storage, "canary", candidate, held, now=fleet.now)
        assert contents(fleet.folder / "channels") == before

    refused(draft, keyring, "root: signed by 0 of the 1 keys")
    sign_root(draft, keyring.model_copy(update={"root": keyring.root[:1]}), root)
    refused(draft, keyring, "root: signed by 0 of the 1 keys")  # the old key signed, the new one didn't
    sign_root(draft, keyring, root)
    refused(draft, fleet.keyring, r"timestamp: (signed by 0 of the 1|the keyring has none)")
    refused(draft, keyring.model_copy(update={"targets": ()}), "targets: signed by 0 of the 1 keys")
    later = draft_next_root(draft, {}, now=fleet.now, days=365)
    sign_root(later, keyring, draft)
    refused(later, keyring, "the draft is root 3, in force is 1; draft it again")
    old = draft_next_root(root, {}, now=fleet.now - timedelta(days=3), days=2)
    sign_root(old, keyring, root)
    refused(old, keyring, "the draft ended 2029-12-31")
    forged = draft_next_root(root, {}, now=fleet.now, days=365)
    sign_root(forged, Keyring(root=(new_key(fleet, "stranger")[1],)), root)
    refused(forged, keyring, "root: signed by 0 of the 1 keys")


def test_a_threshold_holds_for_online_roles_as_well(fleet: Fleet) -> None:
    root = fleet.open().root
    public, reference = new_key(fleet, "second")
    keys = changed_keys(root.signed, "targets", add=[public], threshold=2)
    draft = draft_next_root(root, {"targets": keys}, now=fleet.now, days=365)
    keyring = fleet.keyring.model_copy(update={"targets": (*fleet.keyring.targets, reference)})
    sign_root(draft, keyring, root)
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now)
    with pytest.raises(ChannelError, match="targets: signed by 1 of the 2 keys that it needs; the keyring lacks the private key of"):
        fleet.publish(plain_bundle(2))
    (fleet.folder / "keys" / "second.pem").unlink()
    with pytest.raises(ChannelError, match=r"second\.pem: no such file"):
        publish(fleet.storage, "canary", plain_bundle(2), keyring, now=fleet.now)


@pytest.mark.parametrize(("threshold", "keys"), [(0, 1), (2, 1), (1, 0)])
def test_a_threshold_that_cant_be_met_is_refused_when_it_is_drafted(fleet: Fleet, threshold: int, keys: int) -> None:
    key = public_key_of(next(iter(fleet.open().root.signed.keys.values())))
    with pytest.raises(ChannelError, match=f"root: {threshold} of {keys} keys must sign; expected 1 to {keys}"):
        draft_next_root(fleet.open().root, {"root": RoleKeys((key,) * keys, threshold)}, now=fleet.now, days=1)


def test_the_same_key_twice_doesnt_count_twice(fleet: Fleet) -> None:
    key = public_key_of(next(iter(fleet.open().root.signed.keys.values())))
    with pytest.raises(ChannelError, match="root: 2 of 1 keys must sign"):
        draft_next_root(fleet.open().root, {"root": RoleKeys((key, key), 2)}, now=fleet.now, days=1)


@pytest.mark.parametrize("roles", [("root",), (*ROLES, "mirrors")])
def test_a_first_root_has_keys_for_just_the_four_roles(fleet: Fleet, roles: tuple[str, ...]) -> None:
    key = public_key_of(next(iter(fleet.open().root.signed.keys.values())))
    with pytest.raises(ChannelError, match="expected keys for root, targets, snapshot, timestamp"):
        draft_root(dict.fromkeys(roles, RoleKeys((key,))), now=fleet.now, days=1)


def test_a_root_in_the_chain_that_its_predecessor_didnt_sign_is_refused(fleet: Fleet) -> None:
    draft, keyring = replaced(fleet, ("root",))
    sign_root(draft, keyring.model_copy(update={"root": keyring.root[-1:]}))
    with pytest.raises(ChannelError, match="root: signed by 0 of the 1 keys"):
        require_root_signed(draft, fleet.open().root)
    fleet.storage.write("canary/metadata/2.root.json", draft.to_bytes())
    with pytest.raises(ChannelError, match=r"2\.root\.json: .*it isn't what the channel's keys signed"):
        fleet.open()


def test_no_root_with_a_wrong_number_is_taken_for_the_next_one(fleet: Fleet) -> None:
    draft, keyring = replaced(fleet, ("timestamp",))
    draft.signed.version = 5
    sign_root(draft, keyring, fleet.open().root)
    fleet.storage.write("canary/metadata/2.root.json", draft.to_bytes())
    with pytest.raises(ChannelError, match=r"2\.root\.json: it is version 5; expected 2"):
        fleet.open()


def test_what_devices_read_never_holds_a_private_key(fleet: Fleet) -> None:
    draft, keyring = replaced(fleet, ROLES)
    sign_root(draft, keyring, fleet.open().root)
    apply_root(fleet.storage, "canary", draft, keyring, now=fleet.now)
    secrets = [file.read_text().splitlines()[1].encode() for file in (fleet.folder / "keys").glob("*.pem")]
    published = b"".join(contents(fleet.folder / "channels").values()) + json.dumps(fleet.open().log.to_json()).encode()
    assert len(secrets) == 9 and not any(secret in published or b"PRIVATE" in published for secret in secrets)

"""Changes of release channels, to be cut short by `killing`: each must leave the channel as it was, or as it is to be."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from killing import Scenario
from release_channels import Fleet, plain_bundle
from tuf.api.metadata import Metadata, Root

from tfx_edge.release.channel import channel_exists, verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import generate_key
from tfx_edge.release.promote import promote
from tfx_edge.release.publish import publish
from tfx_edge.release.rekey import changed_keys
from tfx_edge.release.rollback import rollback
from tfx_edge.release.root import draft_next_root, sign_root
from tfx_edge.release.rotate import apply_root
from tfx_edge.release.tick import tick
from tfx_edge.schemas import ChannelPolicy, HealthRule, Keyring, RolloutStep
from tfx_edge.schemas.keyring import KeyReference

GROWING = ChannelPolicy(
    steps=(RolloutStep(share=0.5, go_on=HealthRule(min_age_hours=1, min_healthy_devices=0)), RolloutStep(share=1)), promote_to="beta"
)
FORCED = {"force": True, "reason": "a test"}


def fleet_keys(fleet: Fleet) -> Keyring:
    return fleet.keyring


def changing(
    name: str,
    prepare: Callable[[Fleet], object],
    operate: Callable[[Fleet], object],
    again: Callable[[Fleet], object] | None = None,
    keyring: Callable[[Fleet], Keyring] = fleet_keys,
) -> Scenario:
    """A change of a channel.

    Args:
        name: of the channel that changes.
        prepare: makes channels.
        operate: the change.
        again: what a user does after a change that was cut short, where it isn't the same; it may find all done.
        keyring: what signs further changes.
    """

    def state(folder: Path) -> tuple[object, ...]:
        channel = Fleet(folder).open(name)
        verify_files(channel)
        return channel.index, channel.policy, {role: channel.root.signed.roles[role].keyids for role in channel.root.signed.roles}

    def check(folder: Path, before: Path, after: Path) -> None:
        assert state(folder) in (state(before), state(after)), "neither the old nor the new state"

    def repeat(folder: Path, before: Path, after: Path) -> None:
        was_new = state(folder) == state(after)
        for _ in range(2):
            (again or operate)(Fleet(folder))
            assert state(folder) == state(after)
        channel = Fleet(folder).open(name)
        logged, expected = (len(one.log.entries) for one in (channel, Fleet(after).open(name)))
        assert logged == expected, f"{logged} log entries, {expected} after a whole run; the new state was there: {was_new}"
        _further_changes(folder, name, keyring)

    return Scenario(lambda folder: prepare(Fleet(folder)), lambda folder: operate(Fleet(folder)), check, repeat, ChannelError)


def _further_changes(folder: Path, name: str, keyring: Callable[[Fleet], Keyring]) -> None:
    """Whatever was left lying around is gone two changes later."""
    fleet = Fleet(folder)
    for seed in (8, 9):
        publish(fleet.storage, name, plain_bundle(seed), keyring(fleet), now=fleet.now, who="tester")
    verify_files(fleet.open(name))
    strays = [path for path in fleet.storage.list(f"{name}/targets") if ".partial" in path]
    assert not strays, strays


def _publish(seed: int, name: str = "canary") -> Callable[[Fleet], object]:
    return lambda fleet: fleet.publish(plain_bundle(seed), name)


def _both(*steps: Callable[[Fleet], object]) -> Callable[[Fleet], object]:
    def run(fleet: Fleet) -> None:
        for step in steps:
            step(fleet)

    return run


def _create(fleet: Fleet) -> Fleet:
    return fleet.create("canary", "beta")


def _promote(fleet: Fleet) -> object:
    return promote(fleet.storage, "canary", "beta", fleet.keyring, now=fleet.now, who="tester", **FORCED)


def _rollback(fleet: Fleet) -> object:
    return rollback(fleet.storage, "canary", fleet.keyring, release=2, now=fleet.now, who="tester")


def _rollback_again(fleet: Fleet) -> None:
    """The number of the release that is to go says whether it is gone."""
    if any(release.number == 2 for release in fleet.open().index.releases):
        _rollback(fleet)


def _growing(fleet: Fleet) -> None:
    fleet.create("beta").create("canary", policies={"canary": GROWING}).publish(plain_bundle(1))


def _tick(fleet: Fleet) -> None:
    later = replace(fleet).later(days=60)
    actions = tick(fleet.storage, ["canary"], fleet.keyring, now=later, who="tester")
    failed = [action.text for action in actions if action.action == "failed"]
    if failed:
        raise ChannelError(failed[0])


def _draft(fleet: Fleet) -> None:
    """New keys for all roles but the root's second, and a root that names them, signed."""
    fleet.create("canary", root_keys=2, root_threshold=2).publish(plain_bundle(1))
    root = fleet.open().root
    folder = fleet.folder / "keys"
    new = {role: generate_key(folder / f"new-{role}.pem") for role in ("root", "targets", "snapshot", "timestamp")}
    roles = {role: changed_keys(root.signed, role, add=[key], revoke=root.signed.roles[role].keyids[:1]) for role, key in new.items()}
    draft = draft_next_root(root, roles, now=fleet.now, days=365)
    sign_root(draft, both_keys(fleet), root)
    (fleet.folder / "draft.json").write_bytes(draft.to_bytes())


def both_keys(fleet: Fleet) -> Keyring:
    """The fleet's keyring with the new keys."""
    keyring = fleet.keyring
    folder = fleet.folder / "keys"
    new = {
        role: (*getattr(keyring, role), KeyReference(uri=f"file2:{folder}/new-{role}.pem"))
        for role in ("root", "targets", "snapshot", "timestamp")
    }
    return keyring.model_copy(update=new)


def _rotate(fleet: Fleet) -> None:
    draft: Metadata[Root] = Metadata.from_bytes((fleet.folder / "draft.json").read_bytes())
    apply_root(fleet.storage, "canary", draft, both_keys(fleet), now=fleet.now, who="tester")


first_release = changing("canary", _create, _publish(1))
second_release = changing("canary", _both(_create, _publish(1)), _publish(2))
promotion = changing("beta", _both(_create, _publish(1)), _promote)
rolled_back = changing("canary", _both(_create, _publish(1), _publish(2)), _rollback, _rollback_again)
ticked = changing("canary", _growing, _tick)
rotation = changing("canary", _draft, _rotate, keyring=both_keys)


def _made(folder: Path) -> bool:
    return channel_exists(Fleet(folder).storage, "canary")


def _check_creation(folder: Path, before: Path, after: Path) -> None:
    if _made(folder):
        verify_files(Fleet(folder).open())
    keys = folder / "keys"
    for key in keys.glob("*.pem") if keys.exists() else ():
        assert key.stat().st_mode & 0o777 == 0o600 and key.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")


def _repeat_creation(folder: Path, before: Path, after: Path) -> None:
    fleet = Fleet(folder)
    keys = {key: key.read_bytes() for key in folder.glob("keys/*.pem")}
    if not _made(folder):
        fleet.create("canary")
    fleet.publish(plain_bundle(1))
    verify_files(fleet.open())
    assert all(key.read_bytes() == content for key, content in keys.items()), "a key was overwritten"
    assert {path.name for path in folder.glob("keys/*")} == {path.name for path in after.glob("keys/*")}, "a copy of a key is left"
    assert len(fleet.keyring.targets) == 1


creation = Scenario(lambda folder: None, lambda folder: Fleet(folder).create("canary"), _check_creation, _repeat_creation, ChannelError)

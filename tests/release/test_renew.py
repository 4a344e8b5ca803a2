"""Signatures that would end soon are made anew, by whichever keys are at hand."""

from pathlib import Path

import pytest
from release_channels import Fleet, contents, plain_bundle

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.renew import renew

ALL = ("targets", "snapshot", "timestamp")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path).create("canary")
    fleet.publish(plain_bundle(1))
    return fleet


@pytest.mark.parametrize(
    ("days", "roles"),
    [
        (0.9, ()),
        (1.1, ("timestamp",)),
        (3.4, ("timestamp",)),
        (3.6, ("snapshot", "timestamp")),
        (44, ("snapshot", "timestamp")),
        (46, ALL),
        (400, ALL),
    ],
)
def test_each_role_is_signed_again_well_before_its_end_and_not_earlier(fleet: Fleet, days: float, roles: tuple[str, ...]) -> None:
    before = fleet.open()
    now = fleet.later(days=days)
    assert renew(before, fleet.keyring, now=now)[1] == roles
    after = fleet.open()
    verify_files(after)
    for role in ALL:
        old, new = getattr(before, role).signed, getattr(after, role).signed
        assert new.version == old.version + (role in roles) and (new.expires > old.expires) == (role in roles)
    assert after.targets.signed.targets == before.targets.signed.targets
    assert renew(after, fleet.keyring, now=now)[1] == (), "twice at once changes nothing"


def test_without_the_targets_key_the_others_are_renewed(fleet: Fleet) -> None:
    keyring = fleet.keyring.model_copy(update={"targets": ()})
    assert renew(fleet.open(), keyring, now=fleet.later(days=60))[1] == ("snapshot", "timestamp")
    assert renew(fleet.open(), keyring.model_copy(update={"snapshot": ()}), now=fleet.later(days=2))[1] == ("timestamp",)
    assert renew(fleet.open(), keyring.model_copy(update={"timestamp": ()}), now=fleet.later(days=60))[1] == ()
    verify_files(fleet.open())


def test_a_targets_key_that_was_moved_away_keeps_nothing_from_being_renewed(fleet: Fleet) -> None:
    """The keyring still names the file."""
    (fleet.folder / "keys" / "canary-targets.pem").unlink()
    assert renew(fleet.open(), fleet.keyring, now=fleet.later(days=60))[1] == ("snapshot", "timestamp")


@pytest.mark.parametrize(("broken", "renewed"), [("targets", ("snapshot", "timestamp")), ("snapshot", ("timestamp",)), ("timestamp", ())])
def test_a_broken_key_is_told_after_the_others_have_signed(fleet: Fleet, broken: str, renewed: tuple[str, ...]) -> None:
    (fleet.folder / "keys" / f"canary-{broken}.pem").write_text("broken")
    before = fleet.open()
    with pytest.raises(ChannelError, match=rf"canary-{broken}\.pem: can't sign"):
        renew(before, fleet.keyring, now=fleet.later(days=60))
    after = fleet.open()
    verify_files(after)
    assert tuple(role for role in ALL if getattr(after, role).signed.version > getattr(before, role).signed.version) == renewed


def test_an_expired_channel_opens_and_comes_back(fleet: Fleet) -> None:
    now = fleet.later(days=200)
    assert fleet.open().expired(now) == ALL
    renew(fleet.open(), fleet.keyring, now=now)
    assert fleet.open().expired(now) == ()


def test_an_expired_root_is_told_and_renewed_by_its_own_keys_alone(fleet: Fleet) -> None:
    now = fleet.later(days=366)
    renew(fleet.open(), fleet.keyring, now=now)
    assert fleet.open().expired(now) == ("root",)
    before = contents(fleet.folder)
    renew(fleet.open(), fleet.keyring, now=now)
    assert contents(fleet.folder) == before

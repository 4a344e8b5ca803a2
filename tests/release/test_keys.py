"""Private keys by reference: where they may be, what is said of those that can't be used, and that none is ever shown or overwritten."""

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key
from release_channels import Fleet, plain_bundle
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import generate_key, key_of, load_keyring, public_key_in, public_key_of, remove_partial_keys, signers_for
from tfx_edge.release.publish import publish
from tfx_edge.schemas import Keyring
from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.keyring import KeyReference

ONLINE = ("targets", "snapshot", "timestamp")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "#1 fleet?").create("canary")


def referring(fleet: Fleet, reference: Callable[[str], str]) -> Keyring:
    """A keyring with other references to the channel's keys, without ids."""
    return Keyring(**{role: (KeyReference(uri=reference(role)),) for role in ONLINE}, roots=fleet.keyring.roots)


def pem(fleet: Fleet, role: str) -> str:
    return (fleet.folder / "keys" / f"canary-{role}.pem").read_text()


def test_a_new_key_is_its_owners_alone_and_never_overwrites_one(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "a.pem"
    public = generate_key(file)
    assert public == public_key_in(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    before = file.read_bytes()
    with pytest.raises(ChannelError, match=r"a\.pem: is there already; a key is never overwritten"):
        generate_key(file)
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]


def test_no_second_copy_of_a_key_stays_behind(tmp_path: Path) -> None:
    generate_key(tmp_path / "a.pem")
    os.link(tmp_path / "a.pem", tmp_path / ".a.pem.partial-12345678")
    generate_key(tmp_path / "b.pem")
    remove_partial_keys(tmp_path / "a.pem")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pem", "b.pem"]


def test_a_key_that_cant_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ChannelError, match=r"file: can't be made: (File exists|Not a directory)"):
        generate_key(tmp_path / "file" / "a.pem")


def test_keys_come_from_files_of_any_name_and_the_environment(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ONLINE:
        monkeypatch.setenv(f"KEY_{role}", pem(fleet, role))
    keyrings = (
        fleet.keyring,
        referring(fleet, lambda role: f"file2:{fleet.folder}/keys/canary-{role}.pem"),
        referring(fleet, lambda role: f"env:KEY_{role}"),
    )
    assert [_publish(fleet, number, keyring) for number, keyring in enumerate(keyrings)] == [1, 2, 3]
    verify_files(fleet.open())


def test_a_plugin_registers_a_signer(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vault_signer.py").write_text(
        """
from pathlib import Path
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner

class VaultSigner(CryptoSigner):
    @classmethod
    def from_priv_key_uri(cls, priv_key_uri, public_key, secrets_handler=None):
        return CryptoSigner.from_priv_key_uri("file2:" + str(Path(__file__).parent / priv_key_uri.partition(":")[2]), public_key)

SIGNER_FOR_URI_SCHEME["vault"] = VaultSigner
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for role in ONLINE:
        (tmp_path / role).write_text(pem(fleet, role))
    keyring = referring(fleet, lambda role: f"vault:{role}").model_copy(update={"plugins": ("vault_signer",)})
    try:
        fleet.publish(plain_bundle(1))
        release = _publish(fleet, 2, keyring)
    finally:
        SIGNER_FOR_URI_SCHEME.pop("vault", None)
        sys.modules.pop("vault_signer", None)
    assert release == 2
    verify_files(fleet.open())


@pytest.mark.parametrize(
    ("code", "why"), [(None, "No module named 'no_such_signer'"), ("1 / 0", "division by zero"), ("raise RuntimeError", "RuntimeError")]
)
def test_a_plugin_that_cant_be_imported_is_one_line(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, why: str
) -> None:
    if code:
        (tmp_path / "no_such_signer.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ChannelError, match=re.escape(f"keyring's plugin 'no_such_signer' can't be imported: {why}; install it")):
        _publish(fleet, 1, fleet.keyring.model_copy(update={"plugins": ("no_such_signer",)}))


def _publish(fleet: Fleet, seed: int, keyring: Keyring) -> int:
    return publish(fleet.storage, "canary", plain_bundle(seed), keyring, now=fleet.now).release.number


def _encrypted(fleet: Fleet) -> bytes:
    key = load_pem_private_key(pem(fleet, "targets").encode(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


@pytest.mark.parametrize(
    ("break_it", "text"),
    [
        (lambda fleet, file: file.unlink(), r"canary-targets\.pem: no such file; mend the keyring, or put the key there"),
        (lambda fleet, file: file.write_bytes(file.read_bytes()[:-60]), "holds no unencrypted private key in PEM"),
        (lambda fleet, file: file.write_bytes(_encrypted(fleet)), "holds no unencrypted private key in PEM"),
        (lambda fleet, file: file.write_text(pem(fleet, "snapshot")), r"isn't the key [0-9a-f]{64}; mend the keyring"),
        (lambda fleet, file: (file.unlink(), file.mkdir()), "can't sign: .*Is a directory"),
    ],
)
def test_a_key_that_cant_be_used_is_one_line_without_a_byte_of_it_and_nothing_changes(fleet, break_it, text: str) -> None:
    file = fleet.folder / "keys" / "canary-targets.pem"
    secrets = [line for key in (fleet.folder / "keys").glob("*.pem") for line in key.read_text().splitlines() if not line.startswith("-")]
    break_it(fleet, file)
    before = sorted(path for path in fleet.storage.list("") if not path.endswith("lock"))
    with pytest.raises(ChannelError, match=text) as error:
        fleet.publish(plain_bundle(1))
    said = "".join(map(str, (error.value, error.value.__cause__)))
    assert len(str(error.value).splitlines()) == 1
    assert not any(secret[:20] in said or secret[-20:] in said for secret in secrets)
    assert sorted(path for path in fleet.storage.list("") if not path.endswith("lock")) == before


def test_an_environment_variable_that_holds_no_key_is_named_and_not_shown(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = referring(fleet, lambda role: "env:THE_KEY")
    with pytest.raises(ChannelError, match="key env:THE_KEY: can't sign: the environment has no THE_KEY"):
        _publish(fleet, 1, keyring)
    monkeypatch.setenv("THE_KEY", pem(fleet, "targets").replace("PRIVATE", "PUBLIC"))
    with pytest.raises(ChannelError, match="THE_KEY holds no unencrypted private key in PEM") as error:
        _publish(fleet, 1, keyring)
    assert "MC4C" not in f"{error.value} {error.value.__cause__}"


def test_a_reference_without_an_id_finds_its_key_among_keys_of_other_kinds(tmp_path: Path) -> None:
    signers = [CryptoSigner.generate_ecdsa(), CryptoSigner.generate_rsa(size=2048), CryptoSigner.generate_ed25519()]
    files = [tmp_path / f"{number}.pem" for number in range(3)]
    for file, signer in zip(files, signers, strict=True):
        file.write_bytes(signer.private_bytes)
    keys = {signer.public_key.keyid: signer.public_key for signer in signers}
    found = signers_for([KeyReference(uri=f"file2:{file}") for file in files], keys, need=3)
    assert {signer.public_key.keyid for signer in found} == set(keys)
    assert {key_of(public_key_of(key)).keyid for key in keys.values()} == set(keys)


def test_keys_that_are_lost_or_elsewhere_stop_nothing_where_enough_are_here(tmp_path: Path) -> None:
    keys = [generate_key(tmp_path / f"{number}.pem") for number in range(3)]
    known = {key_of(key).keyid: key_of(key) for key in keys}
    references = [KeyReference(uri=f"file2:{tmp_path}/{number}.pem", key_id=key_of(key).keyid) for number, key in enumerate(keys)]
    (tmp_path / "0.pem").unlink()
    assert len(signers_for(references, known, need=2)) == 2
    with pytest.raises(ChannelError, match=r"0\.pem: no such file"):
        signers_for(references, known, need=3)


def test_a_keyring_that_is_moved_with_its_keys_still_finds_them(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads((fleet.folder / "keys" / "keyring.json").read_text())
    assert document["targets"][0]["uri"] == "file2:canary-targets.pem"
    (fleet.folder / "keys").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    assert _publish(fleet, 1, load_keyring(Path("moved/keyring.json"))) == 1


@pytest.mark.parametrize(
    "public",
    [
        PublicKey(public="12"),
        PublicKey(public="x" * 64),
        PublicKey(keytype="rsa", scheme="rsassa-pss-sha256", public="no PEM"),
        PublicKey(keytype="ecdsa", scheme="ecdsa-sha2-nistp256", public="-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"),
    ],
)
def test_what_is_no_public_key_is_one_line(public: PublicKey) -> None:
    with pytest.raises(ChannelError, match=f"expected a {public.keytype} key") as error:
        key_of(public)
    assert len(str(error.value).splitlines()) == 1


def test_a_keyring_that_isnt_there_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(ChannelError, match="No such file or directory; expected a keyring.json"):
        load_keyring(tmp_path / "keyring.json")

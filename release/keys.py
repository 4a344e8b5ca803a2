"""Private keys by reference, and the public keys that go with them. Ed25519 by default; securesystemslib's signers for the rest."""

import importlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner, Key, SecretsHandler, Signer, SSlibKey

from tfx_edge.release.errors import ChannelError
from tfx_edge.release.storage import make_folder, sync_folder
from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.keyring import KeyReference, Keyring

FILE, ENVIRONMENT = CryptoSigner.SCHEME, "env"
"""URI schemes: a PEM file, and an environment variable that holds the PEM."""

_PROBE = b"tfx-edge: does this key sign for its public key?"


class EnvironmentSigner(CryptoSigner):
    """Signs with the key in the environment variable of an `env:NAME`, as PKCS8 PEM."""

    @classmethod
    def from_priv_key_uri(cls, priv_key_uri: str, public_key: Key, secrets_handler: SecretsHandler | None = None) -> CryptoSigner:
        """As Signer's.

        Raises:
            ValueError: no such variable, or no key in it; the text never holds its value.
        """
        name = priv_key_uri.partition(":")[2]
        if name not in os.environ:
            raise ValueError(f"the environment has no {name}")
        try:
            private_key = _private_key(os.environ[name].encode())
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
        if not isinstance(public_key, SSlibKey):
            raise ValueError(f"{name} can't sign for a key of type {public_key.keytype}")
        return CryptoSigner(private_key, public_key)


SIGNER_FOR_URI_SCHEME.setdefault(ENVIRONMENT, EnvironmentSigner)


def generate_key(file: Path) -> PublicKey:
    """Makes an Ed25519 key.

    Args:
        file: where the private key goes, as PKCS8 PEM that its owner alone can read. It appears whole or not at all.

    Returns:
        The public key.

    Raises:
        ChannelError: the file is there already, or can't be written.
    """
    signer = CryptoSigner.generate_ed25519()
    make_key_folder(file.parent)
    try:
        remove_partial_keys(file)
        descriptor, partial = tempfile.mkstemp(dir=file.parent, prefix=_partial(file))  # of mode 0600
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(signer.private_bytes)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(partial, file)  # unlike a rename it never replaces a key
        finally:
            os.unlink(partial)
        sync_folder(file.parent)
    except FileExistsError:
        raise ChannelError(f"{file}: is there already; a key is never overwritten, so move it away or name another folder") from None
    except OSError as error:
        raise ChannelError(f"{file}: can't be written: {error.strerror}; make room or give the folder to this user") from error
    return public_key_of(signer.public_key)


def make_key_folder(folder: Path) -> None:
    """Makes a folder that its owner alone can enter; one that is there stays as it is.

    Raises:
        ChannelError: it can't be made.
    """
    try:
        make_folder(folder, mode=0o700)
    except OSError as error:
        raise ChannelError(f"{folder}: can't be made: {error.strerror}; make room or give the folder above to this user") from error


def remove_partial_keys(file: Path) -> None:
    """Removes what `generate_key` left of a key when it was cut short: it may be a second copy of the private key, which nobody would
    move away or destroy with the first.

    Raises:
        OSError: it can't be removed.
    """
    for partial in file.parent.glob(f"{_partial(file)}*"):
        partial.unlink()


def _partial(file: Path) -> str:
    return f".{file.name}.partial-"


def public_key_in(file: Path) -> PublicKey:
    """The public key of a private key's PEM file.

    Raises:
        ChannelError: the file can't be read, or holds no key.
    """
    try:
        return public_key_of(SSlibKey.from_crypto(_private_key(file.read_bytes()).public_key()))
    except OSError as error:
        raise ChannelError(f"{file}: {error.strerror}; expected a private key in PEM") from error
    except ValueError as error:
        raise ChannelError(f"{file}: {error}") from None


def load_keyring(file: Path) -> Keyring:
    """Reads a keyring.json. A relative `file2:` path in it is meant from the keyring's own folder.

    Raises:
        ChannelError: no such file, or it can't be read.
        ConfigError: it isn't a keyring.
    """
    try:
        keyring = Keyring.from_json(file.read_bytes())
    except OSError as error:
        raise ChannelError(f"{file}: {error.strerror}; expected a keyring.json, as `tfx-edge channel init` writes it") from error
    folder = file.absolute().parent

    def absolute(reference: KeyReference) -> KeyReference:
        scheme, _, path = reference.uri.partition(":")
        return reference.model_copy(update={"uri": f"{FILE}:{folder / path}"}) if scheme == FILE else reference

    roles = {role: tuple(map(absolute, getattr(keyring, role))) for role in Keyring.model_fields if role not in ("roots", "plugins")}
    return keyring.model_copy(update=roles)


def load_plugins(keyring: Keyring) -> None:
    """Imports the modules that register a keyring's signers.

    Raises:
        ChannelError: one can't be imported.
    """
    for plugin in keyring.plugins:
        try:
            importlib.import_module(plugin)
        except Exception as error:  # a module may raise anything while it runs
            why = " ".join(str(error).split()) or type(error).__name__
            raise ChannelError(f"keyring's plugin {plugin!r} can't be imported: {why}; install it where the channel is signed") from error


def signers_for(references: Iterable[KeyReference], keys: Mapping[str, Key], need: int = 1) -> list[Signer]:
    """Those of the references that sign for one of the keys.

    Args:
        references: to private keys. One with a `key_id` of another role is passed over without a look at it.
        keys: public keys by id.
        need: so many are enough: a reference that can't be used, to a key that was lost or is kept elsewhere, then stops nothing.

    Returns:
        One signer for each key that a reference fits, tried on a message. A cloud's key is asked for a signature here.

    Raises:
        ChannelError: there are fewer than `need`, and a reference can't be read or doesn't fit its key.
    """
    signers: dict[str, Signer] = {}
    unusable: list[ChannelError] = []
    for reference in references:
        fitting = [key for key_id, key in keys.items() if key_id not in signers and reference.key_id in (None, key_id)]
        for key in fitting:
            try:
                signers[key.keyid] = _probed(reference, key)
                break
            except _DoesNotFitError as error:
                unusable.extend([error] if reference.key_id else [])
            except ChannelError as error:
                unusable.append(error)
    if len(signers) < need and unusable:
        raise unusable[0]
    return list(signers.values())


def is_here(reference: KeyReference) -> bool:
    """Whether a key seems to be within reach, without a look at it: a file that is there, a variable that is set, or any other kind."""
    scheme, _, rest = reference.uri.partition(":")
    return {FILE: Path(rest).is_file(), ENVIRONMENT: rest in os.environ}.get(scheme, True)


class _DoesNotFitError(ChannelError):
    """A private key of another public key."""


def _probed(reference: KeyReference, key: Key) -> Signer:
    try:
        signer = _signer(reference, key)
        signature = signer.sign(_PROBE)
    except FileNotFoundError:
        raise ChannelError(f"key {reference.uri}: no such file; mend the keyring, or put the key there") from None
    except Exception as error:  # clouds' and plug-ins' signers raise what they like, says securesystemslib
        why = " ".join(str(error).split()) or type(error).__name__
        raise ChannelError(f"key {reference.uri}: can't sign: {why}; expected the key {key.keyid}") from error
    try:
        key.verify_signature(signature, _PROBE)
    except UnverifiedSignatureError:
        raise _DoesNotFitError(f"key {reference.uri}: isn't the key {key.keyid}; mend the keyring") from None
    return signer


def _signer(reference: KeyReference, key: Key) -> Signer:
    scheme, _, rest = reference.uri.partition(":")
    if scheme == FILE and isinstance(key, SSlibKey):  # securesystemslib's own reads URIs as a browser does, and stops at a # in a path
        return CryptoSigner(_private_key(Path(rest).read_bytes()), key)
    return Signer.from_priv_key_uri(reference.uri, key)


def _private_key(pem: bytes) -> PrivateKeyTypes:
    """Parses a PEM; no error has anything of it.

    Raises:
        ValueError: it is none.
    """
    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("holds no unencrypted private key in PEM") from None


def key_of(public: PublicKey) -> SSlibKey:
    """A public key with TUF's id of it.

    Raises:
        ChannelError: it isn't one.
    """
    try:
        if public.keytype == "ed25519":
            return SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(bytes.fromhex(public.public)), scheme=public.scheme)
        return SSlibKey.from_crypto(load_pem_public_key(public.public.encode()), scheme=public.scheme)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ChannelError(f"public key {public.public!r:.80}: {error}; expected a {public.keytype} key, scheme {public.scheme}") from error


def parse_public_key(text: str) -> PublicKey:
    """A public key as people hand it over: 64 hexadecimal digits of Ed25519, or the path of a PEM file.

    Raises:
        ChannelError: it is neither.
    """
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        return public_key_of(key_of(PublicKey(public=text.lower())))
    try:
        return public_key_of(SSlibKey.from_crypto(load_pem_public_key(Path(text).read_bytes())))
    except (OSError, ValueError, UnsupportedAlgorithm):
        raise ChannelError(
            f"public key {text!r:.200}: expected 64 hexadecimal digits of an Ed25519 key, or a PEM file with a public key"
        ) from None


def public_key_of(key: Key) -> PublicKey:
    """The other way round."""
    return PublicKey(keytype=key.keytype, scheme=key.scheme, public=key.keyval["public"])

"""Private keys by reference, and the public keys that go with them. Ed25519 by default; securesystemslib's signers for the rest."""

import importlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner, Key, SecretsHandler, Signer, SSlibKey

from tfx_edge.release.errors import ChannelError
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
            private_key = load_pem_private_key(os.environ[name].encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError(f"{name} holds no unencrypted private key in PEM") from None
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
        ChannelError: the file is there already.
    """
    signer = CryptoSigner.generate_ed25519()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, partial = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(signer.private_bytes)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(partial, file)  # unlike a rename it never replaces a key
    except FileExistsError:
        raise ChannelError(f"{file}: is there already; a key is never overwritten, so move it away or name another folder") from None
    finally:
        os.unlink(partial)
    return public_key_of(signer.public_key)


def public_key_in(file: Path) -> PublicKey:
    """The public key of a private key's PEM file.

    Raises:
        ChannelError: the file can't be read, or holds no key.
    """
    try:
        return public_key_of(SSlibKey.from_crypto(load_pem_private_key(file.read_bytes(), None).public_key()))
    except OSError as error:
        raise ChannelError(f"{file}: {error.strerror}; expected a private key in PEM") from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ChannelError(f"{file}: holds no unencrypted private key in PEM") from None


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

    roles = {role: tuple(map(absolute, getattr(keyring, role))) for role in Keyring.model_fields if role != "plugins"}
    return keyring.model_copy(update=roles)


def load_plugins(keyring: Keyring) -> None:
    """Imports the modules that register a keyring's signers.

    Raises:
        ChannelError: one can't be imported.
    """
    for plugin in keyring.plugins:
        try:
            importlib.import_module(plugin)
        except ImportError as error:
            raise ChannelError(f"keyring's plugin {plugin!r} can't be imported: {error}; install it where the channel is signed") from error


def signers_for(references: Iterable[KeyReference], keys: Mapping[str, Key]) -> list[Signer]:
    """Those of the references that sign for one of the keys.

    Args:
        references: to private keys. One with a `key_id` of another role is passed over without a look at it.
        keys: public keys by id.

    Returns:
        One signer for each key that a reference fits, tried on a message. A cloud's key is asked for a signature here.

    Raises:
        ChannelError: a reference names one of the keys, but can't be read or doesn't fit it.
    """
    signers: dict[str, Signer] = {}
    for reference in references:
        if reference.key_id is not None:
            if reference.key_id in keys and reference.key_id not in signers:
                signers[reference.key_id] = _probed(reference, keys[reference.key_id])
            continue
        for key_id, key in keys.items():
            if key_id not in signers:
                try:
                    signers[key_id] = _probed(reference, key)
                    break
                except _DoesNotFitError:
                    continue
    return list(signers.values())


class _DoesNotFitError(ChannelError):
    """A private key of another public key."""


def _probed(reference: KeyReference, key: Key) -> Signer:
    try:
        signer = Signer.from_priv_key_uri(reference.uri, key)
        signature = signer.sign(_PROBE)
    except FileNotFoundError:
        raise ChannelError(f"key {reference.uri}: no such file; mend the keyring, or put the key there") from None
    except Exception as error:  # clouds' and plug-ins' signers raise what they like, says securesystemslib
        raise ChannelError(f"key {reference.uri}: can't sign: {' '.join(str(error).split())}; expected the key {key.keyid}") from error
    try:
        key.verify_signature(signature, _PROBE)
    except UnverifiedSignatureError:
        raise _DoesNotFitError(f"key {reference.uri}: isn't the key {key.keyid}; mend the keyring") from None
    return signer


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

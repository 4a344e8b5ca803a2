"""Where a channel's private keys are: references, never the keys."""

from pydantic import Field, field_validator

from tfx_edge.schemas.config import Config
from tfx_edge.schemas.secrets import SecretError, refuse_secret


class KeyReference(Config):
    """A private key, by a URI that securesystemslib's signers or a plug-in read."""

    uri: str = Field(
        description="file2:PATH of a PEM file, env:NAME of a variable that holds the PEM, gcpkms:, awskms:, azurekms:, hsm:, hv:, or a "
        "plug-in's scheme."
    )
    key_id: str | None = Field(default=None, description="TUF's id of the public key; None: whichever of the role's keys fits.")

    @field_validator("uri")
    @classmethod
    def _is_reference(cls, uri: str) -> str:
        refuse_secret("uri", uri, "a file or an environment variable")
        scheme, colon, rest = uri.partition(":")
        if not (scheme.isalnum() and colon and rest):
            raise SecretError("expected SCHEME:REFERENCE, for example file2:/secrets/timestamp.pem or env:TIMESTAMP_KEY")
        return uri


class TrustedRoot(Config):
    """The root keys of a channel's first root: whoever can write where the channel lies may put another there, but can't sign for them."""

    keys: tuple[str, ...] = Field(min_length=1, description="TUF's ids of them.")
    threshold: int = Field(ge=1, description="How many of them must have signed.")


class Keyring(Config):
    """`keyring.json`: the keys that this machine can sign with, and the channels it signs for. One without `root` can't rotate keys."""

    root: tuple[KeyReference, ...] = ()
    targets: tuple[KeyReference, ...] = ()
    snapshot: tuple[KeyReference, ...] = ()
    timestamp: tuple[KeyReference, ...] = ()
    fleet: tuple[KeyReference, ...] = Field(default=(), description="They sign the enrolments of devices.")
    roots: dict[str, TrustedRoot] = Field(
        default_factory=dict, description="By channel: what its first root must be. Nothing is signed for, or taken from, any other one."
    )
    plugins: tuple[str, ...] = Field(
        default=(), description="Import paths of modules that register signers in securesystemslib's SIGNER_FOR_URI_SCHEME."
    )

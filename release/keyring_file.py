"""Changes a keyring.json. References to keys beside it stay relative, so that the folder can be moved."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tfx_edge.release.keys import FILE, key_of, load_keyring
from tfx_edge.release.storage import LocalStorage
from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.keyring import KeyReference, Keyring, TrustedRoot

KEY_ROLES = tuple(name for name in Keyring.model_fields if name not in ("roots", "plugins"))
"""TUF's roles, and the fleet."""


def reference_to(file: str, key: PublicKey) -> KeyReference:
    """A reference to a key that lies beside the keyring, by the file's name."""
    return KeyReference(uri=f"{FILE}:{file}", key_id=key_of(key).keyid)


def add_references(file: Path, references: Mapping[str, Sequence[KeyReference]]) -> None:
    """Adds references to a keyring, which is made where there is none; those that are there already stay single.

    Raises:
        ChannelError: the file can't be read or written.
        ConfigError: it isn't a keyring.
    """
    roles = _relative_roles(file)
    for role, added in references.items():
        roles[role] = (*roles[role], *(reference for reference in added if reference not in roles[role]))
    _write(file, roles)


def remove_references(file: Path, role: str, key_ids: Collection[str]) -> tuple[str, ...]:
    """Takes the references to some keys of a role out of a keyring; the keys stay where they are.

    Returns:
        The URIs of what was taken out.
    """
    roles = _relative_roles(file)
    gone = tuple(reference for reference in roles[role] if reference.key_id in key_ids)
    roles[role] = tuple(reference for reference in roles[role] if reference not in gone)
    if gone:
        _write(file, roles)
    return tuple(reference.uri for reference in gone)


def _relative_roles(file: Path) -> dict[str, tuple[KeyReference, ...]]:
    keyring = load_keyring(file) if file.exists() else Keyring()
    folder = f"{FILE}:{file.absolute().parent}/"

    def relative(reference: KeyReference) -> KeyReference:
        inside = reference.uri.startswith(folder)
        return reference.model_copy(update={"uri": f"{FILE}:{reference.uri.removeprefix(folder)}"}) if inside else reference

    return {role: tuple(map(relative, getattr(keyring, role))) for role in KEY_ROLES}


def _write(file: Path, roles: Mapping[str, tuple[KeyReference, ...]]) -> None:
    known = load_keyring(file) if file.exists() else Keyring()
    _replace(file, known.model_copy(update=dict(roles)))


def trust(file: Path, name: str, root: TrustedRoot) -> None:
    """Lets a keyring know a channel by its first root.

    Raises:
        ChannelError: the file can't be read or written.
        ConfigError: it isn't a keyring.
    """
    known = load_keyring(file) if file.exists() else Keyring()
    _replace(file, known.model_copy(update={**_relative_roles(file), "roots": {**known.roots, name: root}}))


def _replace(file: Path, keyring: Keyring) -> None:
    LocalStorage(file.absolute().parent).write(file.name, keyring.to_json().encode())

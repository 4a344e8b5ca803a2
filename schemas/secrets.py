"""Keeps secrets out of what everybody can read: packages, metadata, logs."""

import re

_NAME = re.compile(r"(?i)(passw(or)?d|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)(?!.*(file|path|name|uri))")
_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|^(AKIA|ASIA)[0-9A-Z]{16}$|^gh[pousr]_\w{20,}|^eyJ[\w-]{10,}\.eyJ|^ya29\.|://[^/@:\s]+:[^/@\s]+@"
)


def refuse_secret(name: str, value: str, instead: str) -> None:
    """Refuses a setting that is a secret by its name or by its look.

    Args:
        name: of the setting.
        value: of it; never part of the error.
        instead: the field that takes secrets by reference.

    Raises:
        ValueError: it is one.

    >>> from tfx_edge.schemas.secrets import refuse_secret
    >>> refuse_secret("TOKEN_FILE", "/var/run/token", "secret_env")
    >>> refuse_secret("DB_PASSWORD", "hunter2", "secret_env")
    Traceback (most recent call last):
    ...
    ValueError: 'DB_PASSWORD' looks like a secret, and everybody who sees the pipeline could read it; give it by reference, in secret_env
    """
    if value and (_NAME.search(name) or _VALUE.search(value)):
        raise ValueError(
            f"{name!r} looks like a secret, and everybody who sees the pipeline could read it; give it by reference, in {instead}"
        )

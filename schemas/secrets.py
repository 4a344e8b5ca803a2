"""Keeps secrets out of what everybody can read: packages, metadata, logs."""

import json
import re
from typing import Any

# A token of text, as in tokenizer, token_ids or max_tokens, is none.
_WORD = r"(?<!max_)(?<!num_)token(?!i[sz]|s?[_-]?(key|column|feature|field|id|count|length|type))"
_NAME = re.compile(rf"(?i)(passw(or)?d|secret|{_WORD}|credential|api[_-]?key|access[_-]?key|private[_-]?key)(?!.*(file|path|name|uri))")
_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\beyJ[\w-]{10,}\.eyJ|^ya29\.|://[^/@:\s]+:[^/@\s]+@"
)


class SecretError(ValueError):
    """A value that must not be shown, in errors neither."""


def looks_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret, and not just where one is.

    >>> from tfx_edge.schemas.secrets import looks_secret
    >>> looks_secret("API_TOKEN"), looks_secret("API_TOKEN_FILE"), looks_secret("max_tokens")
    (True, False, False)
    """
    return _NAME.search(name) is not None


def refuse_secret(name: str, value: str, instead: str) -> None:
    """Refuses a setting that is a secret by its name or by its look.

    Args:
        name: of the setting.
        value: of it; never part of the error.
        instead: the field that takes secrets by reference.

    Raises:
        SecretError: it is one.

    >>> from tfx_edge.schemas.secrets import refuse_secret
    >>> refuse_secret("TOKEN_FILE", "/var/run/token", "secret_env")
    >>> refuse_secret("DB_PASSWORD", "hunter2", "secret_env")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tfx_edge.schemas.secrets.SecretError: 'DB_PASSWORD' looks like a secret, ...; give it by reference, in secret_env
    """
    if value and (looks_secret(name) or _VALUE.search(value)):
        raise SecretError(
            f"{name!r} looks like a secret, and everybody who sees the pipeline could read it; give it by reference, in {instead}"
        )


def refuse_secrets_within(name: str, value: Any, instead: str) -> None:
    """Refuses a setting with a secret anywhere in it: in a list, a dictionary, or the JSON of one. Numbers are none.

    Args:
        name: of the setting; within a dictionary each value has its key's.
        value: of it; never part of the error.
        instead: the field that takes secrets by reference.

    Raises:
        SecretError: there is one.

    >>> from tfx_edge.schemas.secrets import refuse_secrets_within
    >>> refuse_secrets_within("custom_config", '{"label_key": "digit", "max_tokens": 3}', "secret_env")
    >>> refuse_secrets_within("custom_config", '{"store": {"password": "hunter2"}}', "secret_env")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tfx_edge.schemas.secrets.SecretError: 'password' looks like a secret, ...; give it by reference, in secret_env
    """
    if isinstance(value, str):
        inner = _parsed(value)
        if inner is None:
            refuse_secret(name, value, instead)
        else:
            refuse_secrets_within(name, inner, instead)
    elif isinstance(value, dict):
        for key, part in value.items():
            refuse_secrets_within(str(key), part, instead)
    elif isinstance(value, (list, tuple)):
        for part in value:
            refuse_secrets_within(name, part, instead)


def _parsed(text: str) -> Any:
    """A list or dictionary, where the text is JSON of one."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None

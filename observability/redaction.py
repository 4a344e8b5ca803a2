"""Takes secrets out of text that goes to logs."""

import os
import re

from tfx_edge.schemas.secrets import looks_secret

HIDDEN = "[hidden]"

_SHORTEST = 8
"""Shorter values of variables would hide parts of ordinary words."""

_USER_INFO = re.compile(r"(?<=://)[^/@\s'\"]+(?=@)")
_WORDS = r"(?:token|secret|signature|passw(?:or)?d|credential|api[_-]?key|access[_-]?key|private[_-]?key)"
_PARAMETER = re.compile(rf"(?i)(?<=[?&;])((?:[\w.-]*{_WORDS}[\w.-]*|sig|key|code)=)[^&;\s'\"#]+")
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_BY_LOOK = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\beyJ[\w-]{10,}\.eyJ[\w.-]*|\bya29\.[\w.-]+")
_HEADER = re.compile(r"(?i)\b(bearer|basic) +(?=\S*[\d+/=])[\w.~+/=-]{8,}")

_known: set[str] = set()


def hide(secret: str) -> None:
    """Makes `redacted` hide a value from now on, wherever it stands."""
    if len(secret) >= _SHORTEST:
        _known.add(secret)


def hide_environment() -> None:
    """The same for the values of all environment variables that are secrets by their name, such as API_TOKEN."""
    for name, value in os.environ.items():
        if looks_secret(name):
            hide(value)


def redacted(text: str) -> str:
    """The text without what is known to be secret, or looks it: users and passwords of URLs, signed URLs' parameters, keys, tokens.

    >>> from tfx_edge.observability.redaction import redacted
    >>> redacted("reading https://me:hunter2@host/a?X-Amz-Signature=0badf00d&part=1")
    'reading https://[hidden]@host/a?X-Amz-Signature=[hidden]&part=1'
    """
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _PEM.sub(HIDDEN, text)
    text = _USER_INFO.sub(HIDDEN, text)
    text = _PARAMETER.sub(rf"\1{HIDDEN}", text)
    text = _BY_LOOK.sub(HIDDEN, text)
    return _HEADER.sub(rf"\1 {HIDDEN}", text)

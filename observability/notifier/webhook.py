"""An HTTP POST."""

import http.client
import json
import os
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tfx_edge
from tfx_edge.observability.notifier.template import body_of
from tfx_edge.observability.redaction import hide
from tfx_edge.schemas.errors import EdgeError
from tfx_edge.schemas.notify import Notification, Webhook

_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))
_PAUSE_SECONDS = 0.5
"""Before the second attempt; twice as long before each further one."""


def post(webhook: Webhook, notification: Notification) -> None:
    """Posts a notification; a server that is down or in error is asked again.

    Raises:
        EdgeError: there is no such reference, or the server didn't take it. The error has neither URL nor token.
    """
    url = _url(webhook.url)
    headers = {**webhook.headers, "Content-Type": "application/json", "User-Agent": f"tfx-edge/{tfx_edge.__version__}"}
    if webhook.authorization is not None:
        headers["Authorization"] = _value(webhook.authorization)
    content = json.dumps(body_of(webhook, notification)).encode()
    for attempt in range(webhook.retries + 1):
        if attempt:
            time.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
        problem, final = _attempt(urllib.request.Request(url, content, headers), webhook.timeout_s)  # noqa: S310  # _url saw to it
        if problem is None:
            return
        if final:
            break
    raise EdgeError(f"webhook of {webhook.url}: {problem}, after {attempt + 1} attempt{'s' if attempt else ''}")


def longest(webhook: Webhook) -> float:
    """Seconds that `post` takes at most, but for a server that sends a byte now and then."""
    return webhook.timeout_s * (webhook.retries + 1) + _PAUSE_SECONDS * float(2**webhook.retries - 1)


def _attempt(request: urllib.request.Request, timeout_s: float) -> tuple[str | None, bool]:
    """What was wrong, None if nothing, and whether another attempt would find the same. Texts of exceptions have URLs in them."""
    try:
        with _OPENER.open(request, timeout=timeout_s):
            return None, True
    except urllib.error.HTTPError as error:
        error.close()
        return f"the server answered {error.code}", error.code not in _AGAIN
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        cause = getattr(error, "reason", error)
        if isinstance(cause, (TimeoutError, socket.timeout)):
            return f"no answer within {timeout_s:g} s", False
        return f"not reached ({type(cause).__name__}{_number(cause)})", False


def _number(cause: Any) -> str:
    return f", {os.strerror(cause.errno)}" if isinstance(cause, OSError) and isinstance(cause.errno, int) and cause.errno > 0 else ""


def _url(reference: str) -> str:
    url = _value(reference)
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        sound = False
    if not sound:
        raise EdgeError(f"webhook of {reference}: what it holds isn't a URL; expected http:// or https:// and a host")
    return url


def _value(reference: str) -> str:
    """What a reference stands for; hidden in log lines from then on."""
    kind, _, place = reference.partition(":")
    try:
        text = os.environ.get(place) if kind == "env" else Path(place).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise EdgeError(f"webhook of {reference}: the file can't be read ({getattr(error, 'strerror', None) or 'not a text'})") from None
    value = (text or "").strip()
    if not value or not value.isprintable():
        raise EdgeError(f"webhook of {reference}: {'expected one line' if value else 'it is empty or not set'}")
    hide(value)
    return value


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would hand what is told, and the token, to a place that nobody configured."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)

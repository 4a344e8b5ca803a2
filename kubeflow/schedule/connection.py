"""HTTP to the API server: credentials, time-outs, retries, and one line for whatever goes wrong.

KFP's generated client serializes; the requests themselves are sent here. `kfp.Client` isn't used: its constructor reads and writes
~/.config/kfp and asks healthz for half a minute, its calls print and have no time-out.
"""

import json
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.util.retry import Retry

from tfx_edge.schemas import EdgeError

try:
    import kfp_server_api
    from kfp_server_api import rest
except ImportError:
    raise EdgeError("tfx-edge schedule: kfp is not installed; pip install 'tfx-edge[kubeflow]'") from None

_TRANSIENT = (429, 502, 503, 504)
_HEADER_VALUE = re.compile("[!-~]([ -~]*[!-~])?")
_LONGEST_WAIT = 30.0  # seconds, of what a server asks for by Retry-After


class ServerError(EdgeError):
    """The server said no, or couldn't be asked. `status` is 0 where there was no answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Credentials:
    """What proves who asks. Never printed.

    Raises:
        EdgeError: token or cookie can't stand in a header of HTTP.
    """

    token: str | None = None
    cookie: str | None = None
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        # http.client's own error would print the value.
        for name, value in (("token (KFP_TOKEN or --token-file)", self.token), ("cookie (KFP_COOKIE)", self.cookie)):
            if value is not None and not _HEADER_VALUE.fullmatch(value):
                raise EdgeError(f"{name}: is empty, or has a line break or a character that isn't ASCII; give its value alone, on one line")

    def __repr__(self) -> str:
        return "Credentials(...)"


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server; seconds."""

    connect: float = 10.0
    read: float = 60.0
    retries: int = 4
    backoff: float = 0.5  # doubled with every further try


class _Retry(Retry):
    def get_retry_after(self, response: Any) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, _LONGEST_WAIT)


class _Rest(rest.RESTClientObject):  # type: ignore[misc]
    """Sends what the generated client made, and explains failures."""

    def __init__(self, configuration: Any, patience: Patience, host: str) -> None:
        super().__init__(configuration)
        self.timeout = urllib3.Timeout(connect=patience.connect, read=patience.read)
        self.retries = configuration.retries
        self.host = host

    def request(
        self, method: str, url: str, query_params: Any = None, headers: Any = None, body: Any = None, post_params: Any = None, **_: Any
    ) -> Any:
        headers = dict(headers or {})
        if query_params:
            url += "?" + urlencode(query_params)
        sent: dict[str, Any]
        if headers.get("Content-Type") == "multipart/form-data":
            del headers["Content-Type"]
            sent = {"fields": post_params, "encode_multipart": True}
        else:
            headers.setdefault("Content-Type", "application/json")
            sent = {"body": None if body is None else json.dumps(body)}
        what = f"{method} {url.removeprefix(self.host).partition('?')[0]}"
        try:
            # A pool manager follows redirects, to other hosts too, unless the request itself says no.
            response = self.pool_manager.request(
                method, url, headers=headers, timeout=self.timeout, retries=self.retries, redirect=False, **sent
            )
        except (urllib3.exceptions.HTTPError, ssl.SSLError) as error:
            raise ServerError(f"{self.host}: {_cause(error)}") from None
        _refuse(self.host, what, response)
        return rest.RESTResponse(response)


def _cause(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, (urllib3.exceptions.SSLError, ssl.SSLError)):
        if "WRONG_VERSION" in str(reason) or "RECORD_LAYER" in str(reason):
            return "TLS failed: the server speaks plain HTTP; give --host http://..."
        return f"TLS failed ({_short(reason)}); give the authority's certificate with --ca-file, or the host name the certificate is for"
    if isinstance(reason, urllib3.exceptions.LocationParseError):
        return "isn't a URL; give --host http://HOST:PORT"
    if isinstance(reason, urllib3.exceptions.NewConnectionError):
        return f"can't be reached ({_short(reason)}); check --host, the port-forward or the VPN"
    if isinstance(reason, urllib3.exceptions.TimeoutError):
        return "didn't answer in time; check --host and the server's health, then run it again"
    return f"the connection broke ({_short(reason)}); run it again"


def _short(reason: Any) -> str:
    return " ".join(str(reason).split()).rpartition(": ")[2][:200].strip("'()") or type(reason).__name__


def _refuse(host: str, what: str, response: Any) -> None:
    status, kind = response.status, response.headers.get("content-type", "")
    if 300 <= status < 400:
        target = response.headers.get("location", "").partition("?")[0]
        raise ServerError(
            f"{host}: sends to a login page ({target}) instead of an answer; give KFP_TOKEN, --token-file or KFP_COOKIE", status
        )
    if 200 <= status < 300:
        if "json" in kind or not response.data.strip():
            return
        raise ServerError(
            f"{host}: {what} answered {kind or 'something'} that isn't JSON: a login page (dex, IAP) or another service; "
            "give KFP_TOKEN, --token-file or KFP_COOKIE, and check --host",
            status,
        )
    told = _message(response.data)
    means = {
        400: "the server refuses the request",
        401: "not logged in; give KFP_TOKEN, --token-file or KFP_COOKIE, or renew them",
        403: "not allowed; ask for the rights in this namespace, or give --namespace",
        404: "not found; check --host (the API's address, without /pipeline) and the name",
        409: "it exists already, with other content; run it again, or give another name or --version",
        500: "the server failed; its own log (ml-pipeline) says why",
    }.get(status, "the server is busy or failed" if status in _TRANSIENT else "unexpected answer")
    raise ServerError(f"{host}: {what}: {status}, {means}" + (f" ({told})" if told else ""), status)


def _message(data: bytes) -> str:
    try:
        body = json.loads(data)
    except ValueError:
        return ""
    if not isinstance(body, dict):
        return ""
    text = body.get("message") or body.get("error_message") or body.get("error") or ""
    return " ".join(str(text).split())[:300]


def connect(host: str, credentials: Credentials, patience: Patience, *, repeatable: bool) -> Any:
    """A client of the generated kind.

    Args:
        host: URL of the server, http:// or https://.
        credentials: token, cookie, authority.
        patience: time-outs and retries.
        repeatable: for requests that may be sent twice: retried on 429, 502, 503, 504 and broken connections. Others are retried
            only where they surely weren't carried out: no connection came about, or 429.
    """
    if not host.startswith(("http://", "https://")):
        raise EdgeError(f"--host: got {host!r}; expected http:// or https:// before the name, for example http://localhost:8888")
    configuration = kfp_server_api.Configuration()
    configuration.host = host.rstrip("/")
    configuration.retries = _Retry(
        total=patience.retries,
        read=patience.retries if repeatable else 0,
        other=0,
        redirect=False,
        allowed_methods=None,
        status_forcelist=_TRANSIENT if repeatable else (429,),
        backoff_factor=patience.backoff,
        raise_on_status=False,
    )
    if not repeatable:
        # urllib3 would also repeat a POST on 413 and 503 with Retry-After.
        configuration.retries.RETRY_AFTER_STATUS_CODES = frozenset({429})
    if credentials.ca_file is not None:
        _check_certificates(credentials.ca_file)
        configuration.ssl_ca_cert = str(credentials.ca_file)
    if credentials.token is not None:
        configuration.api_key["authorization"] = credentials.token
        configuration.api_key_prefix["authorization"] = "Bearer"
    client = kfp_server_api.ApiClient(configuration, cookie=credentials.cookie)
    client.rest_client = _Rest(configuration, patience, configuration.host)
    return client


def _check_certificates(file: Path) -> None:
    """urllib3 reads the file with the first request, where a failure looks like the server's."""
    try:
        ssl.create_default_context(cafile=str(file))
    except ssl.SSLError:
        raise EdgeError(f"--ca-file {file}: no certificate in it; expected PEM, -----BEGIN CERTIFICATE-----") from None
    except OSError as error:
        raise EdgeError(f"--ca-file {file}: can't be read ({error.strerror})") from None

"""Bytes of a channel's files, from any place in a file on: out of a folder, or over HTTP."""

import os
import stat
import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import urllib3
from tuf.api.exceptions import DownloadError, DownloadHTTPError, SlowRetrievalError
from tuf.ngclient import FetcherInterface
from urllib3.exceptions import HTTPError

from tfx_edge.device.errors import one_line
from tfx_edge.schemas.device import is_url

SILENCE_SECONDS = 30.0
"""A server that says nothing for so long has gone."""

LEAST_BYTES_PER_SECOND = 1024
"""A server that is slower for two minutes keeps the device from other sources; TUF calls that an attack."""

_GRACE_SECONDS = 120.0
_CHUNK = 2**16


class Stream(NamedTuple):
    """Content of a file.

    Attributes:
        start: the place in the file where it begins: the one that was asked for, or 0.
        chunks: it; raises DownloadError where it breaks off.
    """

    start: int
    chunks: Iterator[bytes]


class Fetcher(FetcherInterface):
    """What tuf reads metadata with, and `download` all else."""

    @abstractmethod
    def open(self, url: str, start: int = 0) -> Stream:
        """Opens a file.

        Args:
            url: of it, or its path.
            start: the place from which the content is wanted.

        Raises:
            DownloadHTTPError: there is no such file (404), or the server refuses.
            DownloadError: it can't be read.
        """

    def _fetch(self, url: str) -> Iterator[bytes]:
        return self.open(url).chunks


class FolderFetcher(Fetcher):
    """Files of a folder: mounted, synchronized, or on a stick."""

    def open(self, url: str, start: int = 0) -> Stream:
        try:
            # Without O_NONBLOCK a named pipe would be waited for.
            descriptor = os.open(url, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise DownloadHTTPError(f"{url}: no such file", 404) from None
        except (OSError, ValueError) as error:
            raise DownloadError(f"{url}: {one_line(error)}") from error
        return Stream(start, self._read(descriptor, url, start))

    def _read(self, descriptor: int, url: str, start: int) -> Iterator[bytes]:
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise DownloadError(f"{url}: not a file")
                stream.seek(start)
                while chunk := stream.read(_CHUNK):
                    yield chunk
            except OSError as error:
                raise DownloadError(f"{url}: {one_line(error)}") from error


class HttpFetcher(Fetcher):
    """Files of an HTTP server, which need not know of ranges. Proxies are those of the environment."""

    def __init__(self) -> None:
        self._pools: dict[str | None, Any] = {}

    def open(self, url: str, start: int = 0) -> Stream:
        # Compressed by the server, a file would have other places, and other bytes than those that were signed.
        headers = {"Accept-Encoding": "identity", "User-Agent": "tfx-edge-device", **({"Range": f"bytes={start}-"} if start else {})}
        try:
            response = self.pool(url).request("GET", url, headers=headers, preload_content=False)
        except HTTPError as error:
            raise _broken(url, error) from error
        if response.status >= 400:
            response.close()
            raise DownloadHTTPError(f"{url}: HTTP status {response.status}", response.status)
        first = 0
        if response.status == 206:
            unit, _, rest = response.headers.get("Content-Range", "").partition(" ")
            text = rest.partition("-")[0]
            first = int(text) if unit == "bytes" and text.isdigit() else -1
        if first not in (0, start) or response.status not in (200, 206):
            response.close()
            raise DownloadError(f"{url}: HTTP status {response.status} with the range {response.headers.get('Content-Range')!r:.80}")
        return Stream(first, self._read(response, url))

    def pool(self, url: str) -> Any:
        """The connections to a URL's host, or to the proxy before it: a urllib3.PoolManager."""
        parsed = urllib3.util.parse_url(url)
        proxies = getproxies()
        proxy = None if proxy_bypass(parsed.host or "") else proxies.get(parsed.scheme or "", proxies.get("all"))
        if proxy not in self._pools:
            timeout = urllib3.Timeout(connect=SILENCE_SECONDS, read=SILENCE_SECONDS)
            retries = urllib3.Retry(3, backoff_factor=0.2)
            settings: dict[str, Any] = {"timeout": timeout, "retries": retries}
            self._pools[proxy] = urllib3.ProxyManager(proxy, **settings) if proxy else urllib3.PoolManager(**settings)
        return self._pools[proxy]

    def _read(self, response: Any, url: str) -> Iterator[bytes]:
        began, received = time.monotonic(), 0
        try:
            # read1 gives what has come; read would wait for a full chunk, and a server that drips bytes be never noticed.
            while chunk := response.read1(_CHUNK, decode_content=False):
                yield chunk
                received += len(chunk)
                waited = time.monotonic() - began - _GRACE_SECONDS
                if waited > 0 and received < waited * LEAST_BYTES_PER_SECOND:
                    raise SlowRetrievalError(f"{url}: slower than {LEAST_BYTES_PER_SECOND} bytes per second")
        except HTTPError as error:
            raise _broken(url, error) from error
        finally:
            response.close()


def put(url: str, content: bytes) -> None:
    """Stores a file on an HTTP server.

    Raises:
        DownloadError: the server can't be reached.
        DownloadHTTPError: it doesn't take the file.
    """
    try:
        response = HttpFetcher().pool(url).request("PUT", url, body=content, headers={"Content-Type": "application/json"}, redirect=False)
    except HTTPError as error:
        raise _broken(url, error) from error
    if not 200 <= response.status < 300:
        raise DownloadHTTPError(f"{url}: HTTP status {response.status}", response.status)


def fetcher_for(source: str) -> Fetcher:
    """What reads a source."""
    return HttpFetcher() if is_url(source) else FolderFetcher()


def _broken(url: str, error: HTTPError) -> DownloadError:
    reason = getattr(error, "reason", None) or error
    kind = SlowRetrievalError if isinstance(reason, urllib3.exceptions.TimeoutError) else DownloadError
    return kind(f"{url}: {one_line(reason)}")

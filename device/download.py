"""A file of a channel onto the disk: resumed where an attempt broke off, and of no use before tuf has verified all of it."""

import os
from pathlib import Path

from tuf.api.exceptions import DownloadError, DownloadHTTPError, LengthOrHashMismatchError
from tuf.api.metadata import TargetFile

from tfx_edge.device.errors import DeviceError, one_line
from tfx_edge.device.fetch import Fetcher

_ATTEMPTS = 5
_PASSING = (408, 429, 500, 502, 503, 504)  # HTTP statuses of a server that may do better a moment later


def is_complete(target: TargetFile, path: Path) -> bool:
    """Whether a file is what TUF says that it is."""
    try:
        with path.open("rb") as stream:
            target.verify_length_and_hashes(stream)
    except (FileNotFoundError, LengthOrHashMismatchError):
        return False
    return True


def download(fetcher: Fetcher, url: str, target: TargetFile, path: Path) -> None:
    """Completes a file that may be there in part.

    A part that turns out to be of something else is thrown away, and the file downloaded whole, once.

    Args:
        fetcher: reads the source.
        url: of the file.
        target: TUF's length and hashes of it.
        path: where it goes; it never gets longer than the target.

    Raises:
        DeviceError: it can't be had; what has come stays for the next time. Or the source has something else than what was signed; then
            nothing stays.
        OSError: the disk is full.
    """
    if _size(path) > target.length:
        path.unlink()
    resumed = _size(path) > 0
    _complete(fetcher, url, target, path)
    if resumed and not is_complete(target, path):
        path.unlink()
        _complete(fetcher, url, target, path)
    if not is_complete(target, path):
        path.unlink()
        raise DeviceError(f"{url}: its sha256 isn't the one that the channel's keys signed; the device keeps what it has")


def _complete(fetcher: Fetcher, url: str, target: TargetFile, path: Path) -> None:
    """Appends what is missing, in several attempts as long as each brings something."""
    for left in reversed(range(_ATTEMPTS)):
        before = _size(path)
        try:
            return _append(fetcher, url, target.length, path)
        except DownloadError as error:
            gone = isinstance(error, DownloadHTTPError) and error.status_code not in _PASSING
            if gone or not left or _size(path) <= before:
                so_far = f"{_size(path)} of {target.length} bytes are here, the rest comes with the next update"
                raise DeviceError(f"{one_line(error)}; {so_far}") from error


def _append(fetcher: Fetcher, url: str, length: int, path: Path) -> None:
    with path.open("ab") as file:
        try:
            size = file.tell()
            if size == length:
                return
            start, chunks = fetcher.open(url, size)
            if start != size:  # a server that doesn't know of ranges
                file.truncate(start)
                size = start
            for chunk in chunks:
                size += len(chunk)
                if size > length:
                    file.truncate(0)
                    raise DeviceError(f"{url}: longer than the {length} bytes that the channel's keys signed; the device keeps what it has")
                file.write(chunk)
        finally:
            file.flush()
            os.fsync(file.fileno())
    if size < length:
        raise DownloadError(f"{url}: ends after {size} of {length} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

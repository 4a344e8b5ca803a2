"""Channels on any filesystem that TFX's fileio reaches."""

import json
import os
import posixpath
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import tensorflow as tf
from tfx.dsl.io import fileio

from tfx_edge.components.documents import write_bytes
from tfx_edge.release.errors import ChannelBusyError, ChannelError

LEASE_SECONDS = 600
"""How long a writer may hold a channel; publishing takes seconds. After that another one may take it from a writer that died."""


class FileioStorage:
    """Channels below a URL.

    Object stores have no locks. The lease here keeps apart writers that come some seconds apart; two within the same second can both
    pass, and then the later one's change is the channel's: it verifies all the same, since its metadata name each other by version.
    """

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def read(self, path: str, at_most: int | None = None) -> bytes:
        try:
            with fileio.open(self.describe(path), "rb") as file:
                content: bytes = file.read(-1 if at_most is None else at_most)
                return content
        except (fileio.NotFoundError, tf.errors.NotFoundError):  # fileio lets TensorFlow's through where a file is read late
            raise FileNotFoundError(path) from None
        except (OSError, tf.errors.OpError) as error:
            raise ChannelError(f"{self.describe(path)}: can't be read: {_line(error)}") from error

    def write(self, path: str, content: bytes) -> None:
        try:
            write_bytes(self.describe(path), content)
        except (OSError, tf.errors.OpError) as error:
            raise ChannelError(f"{self.describe(path)}: can't be written: {_line(error)}") from error

    def list(self, folder: str) -> tuple[str, ...]:
        root = self.describe(folder)
        try:
            if not fileio.isdir(root):
                return ()
            files = [posixpath.join(_text(here), _text(name)) for here, _, names in fileio.walk(root) for name in names]
        except (OSError, tf.errors.OpError) as error:
            raise ChannelError(f"{root}: can't be listed: {_line(error)}") from error
        return tuple(sorted(posixpath.join(folder, posixpath.relpath(file, root)) for file in files))

    def folders(self) -> tuple[str, ...]:
        try:
            if not fileio.isdir(self._root):
                return ()
            names = [_text(name).rstrip("/") for name in fileio.listdir(self._root)]  # object stores end a folder's name with a slash
            return tuple(sorted(name for name in names if fileio.isdir(self.describe(name))))
        except (OSError, tf.errors.OpError) as error:
            raise ChannelError(f"{self._root}: can't be listed: {_line(error)}") from error

    def remove(self, path: str) -> None:
        try:
            fileio.remove(self.describe(path))
        except (fileio.NotFoundError, tf.errors.NotFoundError):
            pass
        except (OSError, tf.errors.OpError) as error:
            raise ChannelError(f"{self.describe(path)}: can't be removed: {_line(error)}") from error

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        token, owner = uuid.uuid4().hex, f"process {os.getpid()} on {os.uname().nodename}"
        self._refuse_held(path, None)
        lease = {"token": token, "owner": owner, "until": time.time() + LEASE_SECONDS}
        self.write(path, json.dumps(lease).encode())
        self._refuse_held(path, token)  # another one may have written at the same time
        try:
            yield
        finally:
            with suppress(ChannelError):  # it runs out; what was done under it stays done
                if self._lease(path).get("token") == token:
                    self.remove(path)

    def describe(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _refuse_held(self, path: str, token: str | None) -> None:
        lease = self._lease(path)
        until = lease.get("until")
        if lease.get("token") != token and isinstance(until, float) and until > time.time():
            where = self.describe(posixpath.dirname(path))
            seconds = int(until - time.time())
            raise ChannelBusyError(
                f"{where}: {lease.get('owner')} is changing it; try again when it has ended, in {seconds} s at the latest"
            )

    def _lease(self, path: str) -> dict[str, object]:
        try:
            lease = json.loads(self.read(path))
        except (FileNotFoundError, ValueError):  # a lease that can't be read holds nothing
            return {}
        return lease if isinstance(lease, dict) else {}


def _line(error: Exception) -> str:
    return " ".join((str(error) or str(error.__cause__)).split())  # fileio's own errors are empty, TensorFlow's behind them tell


def _text(path: object) -> str:
    return path.decode() if isinstance(path, bytes) else str(path)

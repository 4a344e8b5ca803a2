"""Where channels lie: a folder, or anything that can read, write and list files."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from tfx_edge.release.errors import ChannelBusyError, ChannelError


class Storage(Protocol):
    """Files by their paths below a root, parts divided by '/'."""

    def read(self, path: str, at_most: int | None = None) -> bytes:
        """The content of a file.

        Args:
            path: of it.
            at_most: how many bytes of it; None: all.

        Raises:
            FileNotFoundError: there is none.
            ChannelError: it can't be read.
        """

    def write(self, path: str, content: bytes) -> None:
        """Writes a file whole or not at all, over one that is there, with the folders above it; on return it outlasts a power cut.

        Raises:
            ChannelError: it can't be written.
        """

    def list(self, folder: str) -> tuple[str, ...]:
        """Paths of all files below a folder, leftovers of writes that were cut short too; none where there is no folder."""

    def remove(self, path: str) -> None:
        """Removes a file; none is fine."""

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Holds a lock while the block runs; it ends with the process that holds it.

        Raises:
            ChannelBusyError: another process has it.
        """

    def describe(self, path: str) -> str:
        """A path as users know it, for messages."""


class LocalStorage:
    """A folder on this machine, or mounted on it."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)

    def read(self, path: str, at_most: int | None = None) -> bytes:
        try:
            with (self._root / path).open("rb") as stream:
                return stream.read(-1 if at_most is None else at_most)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except OSError as error:
            raise ChannelError(f"{self._root / path}: can't be read: {error.strerror}") from error

    def write(self, path: str, content: bytes) -> None:
        file = self._root / path
        self._make_folder(file.parent)
        # One name for each file: what a crash leaves is overwritten by the next try. Only the lock's holder writes.
        partial = file.with_name(f".{file.name}.partial")
        try:
            with partial.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, file)
            _sync_folder(file.parent)
        except OSError as error:
            raise ChannelError(f"{file}: can't be written: {error.strerror}; make room or give the folder to this user") from error

    def list(self, folder: str) -> tuple[str, ...]:
        files = (self._root / folder).rglob("*")
        return tuple(sorted(file.relative_to(self._root).as_posix() for file in files if not file.is_dir()))

    def remove(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        file = self._root / path
        self._make_folder(file.parent)
        with file.open("a+") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.seek(0)
                owner = stream.read(100).strip() or "another process"
                raise ChannelBusyError(f"{file.parent}: {owner} is changing it; try again when it has ended") from None
            stream.truncate(0)
            stream.write(f"process {os.getpid()} on {os.uname().nodename}\n")
            stream.flush()
            yield

    def describe(self, path: str) -> str:
        return str(self._root / path)

    def _make_folder(self, folder: Path) -> None:
        missing = [above for above in (folder, *folder.parents) if not above.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ChannelError(f"{folder}: can't be made: {error.strerror}; give a folder that can be written to") from error
        for made in reversed(missing):
            _sync_folder(made.parent)


def _sync_folder(folder: Path) -> None:
    """A rename lasts once its folder is on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Where channels lie: a folder, or anything that can read, write and list files."""

import fcntl
import os
import stat
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
        """Paths of all files below a folder, leftovers of writes that were cut short too; none where there is no folder.

        Raises:
            ChannelError: it can't be read.
        """

    def folders(self) -> tuple[str, ...]:
        """Names of the folders right below the root; none where there is no root.

        Raises:
            ChannelError: they can't be read.
        """

    def remove(self, path: str) -> None:
        """Removes a file; none is fine.

        Raises:
            ChannelError: it can't be removed.
        """

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Holds a lock while the block runs; it ends with the process that holds it.

        Raises:
            ChannelBusyError: another process has it.
            ChannelError: there can be no lock.
        """

    def describe(self, path: str) -> str:
        """A path as users know it, for messages."""


class LocalStorage:
    """A folder on this machine, or mounted on it."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)

    def read(self, path: str, at_most: int | None = None) -> bytes:
        file = self._root / path
        try:
            # Devices drop files here: a named pipe would be waited for without O_NONBLOCK.
            with open(file, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise ChannelError(f"{file}: not a file")
                return stream.read(-1 if at_most is None else at_most)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except OSError as error:
            raise ChannelError(f"{file}: can't be read: {error.strerror}") from error

    def write(self, path: str, content: bytes) -> None:
        file = self._root / path
        # One name for each file: what a crash leaves is overwritten by the next try. Only the lock's holder writes.
        partial = file.with_name(f".{file.name}.partial")
        try:
            make_folder(file.parent)
            try:
                with partial.open("wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(partial, file)
            except OSError:  # a full disk needs the room
                partial.unlink(missing_ok=True)
                raise
            for folder in file.parents:  # of these an earlier process may have made some, and died before it could sync them
                sync_folder(folder)
                if folder == self._root:
                    break
        except OSError as error:
            raise ChannelError(f"{file}: can't be written: {error.strerror}; make room or give the folder to this user") from error

    def list(self, folder: str) -> tuple[str, ...]:
        try:
            files = [Path(here, name) for here, _, names in os.walk(self._root / folder, onerror=_raise) for name in names]
        except OSError as error:
            raise ChannelError(f"{error.filename}: can't be read: {error.strerror}; give this user the right to read it") from error
        return tuple(sorted(file.relative_to(self._root).as_posix() for file in files))

    def folders(self) -> tuple[str, ...]:
        try:
            return tuple(sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise ChannelError(f"{self._root}: can't be read: {error.strerror}; give this user the right to read it") from error

    def remove(self, path: str) -> None:
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise ChannelError(f"{self._root / path}: can't be removed: {error.strerror}") from error

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        file = self._root / path
        try:
            make_folder(file.parent)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ChannelError(f"{file}: can't be made: {error.strerror}; make room or give the folder to this user") from error
        try:
            self._take(descriptor, file)
            yield
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int, file: Path) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
        except BlockingIOError:
            owner = os.pread(descriptor, 100, 0).decode(errors="replace").strip() or "another process"
            raise ChannelBusyError(f"{file.parent}: {owner} is changing it; try again when it has ended") from None
        except OSError as error:
            raise ChannelError(f"{file}: can't be locked: {error.strerror}; make room or give the folder to this user") from error

    def describe(self, path: str) -> str:
        return str(self._root / path)


def _raise(error: OSError) -> None:
    """A folder that went meanwhile has no files; one that can't be read might have any."""
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Makes a folder and those above it, for good; one that is there stays as it is.

    Raises:
        OSError: it can't be made.
    """
    if not folder.is_dir():
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(mode, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """A rename lasts once its folder is on disk.

    Raises:
        OSError: it can't be brought there.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

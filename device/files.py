"""Writes that outlast a power cut: each is there whole or not at all, and what it leaves when cut short is known by its name.

All that lasts goes through here, but for TUF's metadata (written by tuf) and the bytes of a download (appended by `download`).
"""

import os
import shutil
from pathlib import Path

PARTIAL = ".partial-"
"""Starts the names of what isn't finished: never of use after a crash, and removed by `sweep`."""


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes a file over one that may be there."""
    partial = path.with_name(f"{PARTIAL}{path.name}")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except OSError:  # a full disk needs the room
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Makes a folder and those above it."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def move(source: Path, target: Path) -> None:
    """Renames a file or a folder."""
    os.rename(source, target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def point(link: Path, target: str) -> None:
    """Makes a symbolic link, or lets one that is there point elsewhere: at no time is it missing."""
    partial = link.with_name(f"{PARTIAL}{link.name}")
    partial.unlink(missing_ok=True)
    os.symlink(target, partial)
    os.replace(partial, link)
    sync_folder(link.parent)


def remove(path: Path) -> None:
    """Removes a file, a link or a whole folder; none is fine."""
    if path.is_dir() and not path.is_symlink():
        partial = path.with_name(f"{PARTIAL}{path.name}")
        shutil.rmtree(partial, ignore_errors=True)
        os.rename(path, partial)  # half a folder never stands under its name
        shutil.rmtree(partial)
    else:
        path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync_folder(path.parent)


def sweep(folder: Path) -> None:
    """Removes what writes, moves and removals in a folder left that were cut short."""
    for path in folder.glob(f"{PARTIAL}*") if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Brings a file, or a folder with all that is below it, to the disk."""
    for below in path.iterdir() if path.is_dir() else ():
        sync(below)
    sync_folder(path)


def sync_folder(path: Path) -> None:
    """Brings a file, or a folder's own entries, to the disk: a rename lasts once its folder has."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

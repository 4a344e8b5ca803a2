"""The folder that the client owns.

current -> versions/7-0123456789ab   the bundle that runs: swapped in one step
versions/<release>-<bundle>/         bundles that were verified and passed their self-test, each with its .release.json
downloads/<bundle>/                  what has come so far of a release
metadata/                            TUF's, as verified last
state.json  key.pem  outbox/  lock
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfx_edge.device import files
from tfx_edge.device.errors import DeviceError
from tfx_edge.schemas.device import DeviceState
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.release import BundleFile, Release

_RELEASE = ".release.json"
"""Within a version: no file of a bundle has a name that starts with a dot."""


_PROVISIONED = {"enrolment.json", "key.pem"}
"""What a device may be shipped with in the folder."""


@dataclass(frozen=True)
class Version:
    """A bundle on the device.

    Attributes:
        folder: that holds its files.
        release: that it came with.
    """

    folder: Path
    release: Release


class Store:
    """Reads and changes the folder. Whatever happens between two changes, `current` leads to a version that passed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metadata, self.downloads, self.outbox = folder / "metadata", folder / "downloads", folder / "outbox"
        self._versions, self._current, self._state = folder / "versions", folder / "current", folder / "state.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder's lock, which ends with the process, and removes what an earlier one left half done.

        Raises:
            DeviceError: another process has it.
        """
        files.make_folder(self.folder)
        names = {path.name for path in self.folder.iterdir()}
        if "lock" not in names and names - _PROVISIONED:
            raise DeviceError(
                f"{self.folder}: has {min(names - _PROVISIONED)} in it, which isn't the client's; give it a folder of its own"
            )
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DeviceError(f"{self.folder}: another update is running; wait until it has ended") from None
            for folder in (self.folder, self._versions, self.downloads, self.outbox):
                files.sweep(folder)
            for path in self.metadata.glob("tmp*"):  # tuf's own
                path.unlink()
            yield

    def state(self) -> DeviceState:
        """What is remembered; nothing where it is damaged, since models and metadata don't depend on it."""
        try:
            return DeviceState.from_json(self._state.read_bytes())
        except (FileNotFoundError, ConfigError):
            return DeviceState()

    def remember(self, state: DeviceState) -> None:
        """Writes it, where it has changed."""
        if state != self.state():
            files.write(self._state, state.to_json().encode())

    def current(self) -> Version | None:
        """The version that `current` points to; None where there is none that can be read."""
        return _version(self._versions / self._current.readlink().name) if self._current.is_symlink() else None

    def has_current(self) -> bool:
        """Whether there should be a current version."""
        return self._current.is_symlink()

    def versions(self) -> tuple[Version, ...]:
        """All that are here, the newest release first."""
        found = [version for version in map(_version, self._versions.glob("*")) if version is not None]
        return tuple(sorted(found, key=lambda version: version.release.number, reverse=True))

    def download_folder(self, release: Release) -> Path:
        """Where a release's files come to, with the folders that they need; what isn't of it is removed."""
        folder = self.downloads / release.bundle
        wanted = {folder / file.path for file in release.files}
        for other in self.downloads.glob("*"):
            if other != folder:
                files.remove(other)
        for path in folder.rglob("*") if folder.is_dir() else ():
            if not path.is_dir() and path not in wanted:  # the same bundle of another run may have had a file more
                path.unlink()
        for path in wanted:
            files.make_folder(path.parent)
        return folder

    def missing_bytes(self, release: Release) -> int:
        """How much of a release isn't here."""
        sizes = {file: self.downloads / release.bundle / file.path for file in release.files}
        here = sum(min(path.stat().st_size, file.size_bytes) for file, path in sizes.items() if path.is_file())
        return sum(file.size_bytes for file in release.files) - here

    def copy_of(self, file: BundleFile, path: Path) -> None:
        """Copies a file from another version where one has it, so that it needn't be downloaded; the copy isn't verified."""
        if path.exists():
            return
        for version in self.versions():
            same = next((one for one in version.release.files if one.digest == file.digest), None)
            if same is not None and (version.folder / same.path).is_file():
                shutil.copyfile(version.folder / same.path, path)  # a link would share the damage of one with the other
                return

    def discard(self, release: Release) -> None:
        """Removes what has come of a release."""
        files.remove(self.downloads / release.bundle)

    def adopt(self, folder: Path, release: Release) -> Version:
        """Makes a version of a folder whose bundle was verified and tested."""
        files.write(folder / _RELEASE, release.to_json().encode())
        files.sync(folder)
        target = self._versions / f"{release.number}-{release.bundle[:12]}"
        files.make_folder(self._versions)
        files.remove(target)
        files.move(folder, target)
        return Version(target, release)

    def activate(self, version: Version | None) -> None:
        """Lets `current` point to a version: the step that counts."""
        if version is None:
            files.remove(self._current)
        else:
            files.point(self._current, f"{self._versions.name}/{version.folder.name}")

    def drop(self, version: Version) -> None:
        """Removes a version that isn't the current one."""
        files.remove(version.folder)

    def prune(self, keep: int) -> None:
        """Removes what isn't the current version or one of the newest others, up to `keep` in all.

        A release that the current one takes back isn't kept: nothing shall bring it back.
        """
        current = self.current()
        if current is None:
            return
        others = [version for version in self.versions() if version.folder != current.folder]
        kept = [version for version in others if version.release.number != current.release.rollback_of][: keep - 1]
        stay = {version.folder for version in (current, *kept)}
        for path in self._versions.glob("*"):
            if path not in stay:
                files.remove(path)


def _version(folder: Path) -> Version | None:
    try:
        return Version(folder, Release.from_json((folder / _RELEASE).read_bytes()))
    except (OSError, ConfigError):
        return None

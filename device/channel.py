"""A release channel as TUF vouches for it: nothing of it is looked at before python-tuf's client has verified it."""

from datetime import datetime, timezone
from pathlib import Path

from tuf.api.exceptions import (
    BadVersionNumberError,
    DownloadError,
    ExpiredMetadataError,
    LengthOrHashMismatchError,
    RepositoryError,
    UnsignedMetadataError,
)
from tuf.api.metadata import TargetFile
from tuf.ngclient import Updater

from tfx_edge.device import files
from tfx_edge.device.download import download
from tfx_edge.device.errors import DeviceError, one_line
from tfx_edge.device.fetch import fetcher_for
from tfx_edge.schemas.device import DeviceConfig
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.release import RELEASES, BundleFile, Release, ReleaseIndex


class Channel:
    """The channel that a device follows, as it is at this moment.

    Args:
        config: where it is, its name, and the root.json that all trust starts from.
        metadata: folder in which tuf keeps what it has verified; older metadata is refused from then on.

    Raises:
        DeviceError: it can't be read, doesn't verify, or looks frozen; or the device's root.json can't be used.
        OSError: the metadata can't be kept.
    """

    def __init__(self, config: DeviceConfig, metadata: Path) -> None:
        self._source = config.source.rstrip("/")
        self._fetcher = fetcher_for(config.source)
        try:
            root = Path(config.root).read_bytes()
        except OSError as error:
            raise DeviceError(f"root {config.root}: {error.strerror}; ship the channel's first root.json with the device") from None
        files.make_folder(metadata)
        self._updater = self._trusting(config, metadata, root)
        try:
            self._updater.refresh()
        except (RepositoryError, DownloadError) as error:
            raise DeviceError(f"channel {config.channel} at {self._source}: {_told(error)}") from error
        finally:
            files.sync(metadata)  # tuf renames without it, and a power cut could leave empty files
        self.index = self._read_index(config.channel)

    def _trusting(self, config: DeviceConfig, metadata: Path, root: bytes) -> Updater:
        try:
            return Updater(
                metadata_dir=str(metadata),
                metadata_base_url=f"{self._source}/metadata/",
                fetcher=self._fetcher,
                bootstrap=root,
            )
        except RepositoryError as error:
            raise DeviceError(f"root {config.root}: {one_line(error)}; expected a channel's root.json, signed by its own keys") from error

    def _read_index(self, name: str) -> ReleaseIndex:
        target = self._target(RELEASES)
        try:
            content = self._fetcher.download_bytes(self._url(target), target.length)
            target.verify_length_and_hashes(content)
            index = ReleaseIndex.from_json(content)
        except (RepositoryError, DownloadError) as error:
            raise DeviceError(f"{self._url(target)}: {_told(error)}") from error
        except ConfigError as error:
            raise DeviceError(f"{self._url(target)}: this client can't read it: {error}; update the client") from error
        if index.channel != name:
            raise DeviceError(f"{self._source}: it is the channel {index.channel!r}, this device follows {name!r}; mend its source")
        return index

    def fetch(self, release: Release, file: BundleFile, path: Path) -> None:
        """Downloads a file of a release; what is at the path already is verified and resumed.

        Raises:
            DeviceError: it can't be had, or isn't what was signed.
            OSError: the disk is full.
        """
        target = self._target(release.target_path(file))
        if target.length != file.size_bytes or target.hashes.get("sha256") != file.digest:
            raise DeviceError(f"{self._source}: {RELEASES} and TUF's targets disagree on {target.path}; publish the release again")
        download(self._fetcher, self._url(target), target, path)

    def _target(self, path: str) -> TargetFile:
        try:
            target = self._updater.get_targetinfo(path)
        except (RepositoryError, DownloadError) as error:
            raise DeviceError(f"{self._source}: {path}: {_told(error)}") from error
        if target is None:
            raise DeviceError(f"{self._source}: TUF's targets have no {path}; it isn't a release channel, or a damaged one")
        return target

    def _url(self, target: TargetFile) -> str:
        return f"{self._source}/targets/{target.get_prefixed_paths()[0]}"


def _told(error: Exception) -> str:
    """What a user can make of tuf's exceptions."""
    text = one_line(error)
    if isinstance(error, ExpiredMetadataError):
        clock = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
        return f"{text}: the channel looks frozen, or this device's clock is wrong ({clock}); the device keeps the model that it has"
    if isinstance(error, BadVersionNumberError):
        return f"{text}: older than what this device has seen, which may be an attack; the device keeps the model that it has"
    if isinstance(error, UnsignedMetadataError):
        return f"{text}: not signed by the channel's keys; the device keeps the model that it has"
    if isinstance(error, LengthOrHashMismatchError):
        return f"{text}: isn't what the channel's keys signed; the device keeps the model that it has"
    return text

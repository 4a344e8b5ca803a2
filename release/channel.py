"""A channel as it stands: TUF's metadata verified from the first root on, and the documents that they vouch for."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, Root, Snapshot, T, TargetFile, Targets, Timestamp

from tfx_edge.release.errors import ChannelError
from tfx_edge.release.storage import Storage
from tfx_edge.schemas.channel_log import LOG, ChannelLog
from tfx_edge.schemas.channel_policy import POLICY, ChannelPolicy
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.keyring import Keyring, TrustedRoot
from tfx_edge.schemas.release import RELEASES, ReleaseIndex

Document = TypeVar("Document", bound=Config)


_LATER = re.compile(r"(?!1\.)\d+\.(root|targets|snapshot)\.json")
"""Metadata that a creation which was cut short can't have left: it ends with the first timestamp."""


@dataclass(frozen=True)
class Channel:
    """What `open_channel` read. Everything in it has been verified.

    Attributes:
        storage: where it lies.
        name: of the channel, which is its folder.
        root: TUF's metadata, as those below.
        targets: says length and sha256 of every file.
        snapshot: says which targets metadata is the current one.
        timestamp: says which snapshot is.
        index: what it offers to devices.
        policy: its rules.
        log: what was done to it.
    """

    storage: Storage
    name: str
    root: Metadata[Root]
    targets: Metadata[Targets]
    snapshot: Metadata[Snapshot]
    timestamp: Metadata[Timestamp]
    index: ReleaseIndex
    policy: ChannelPolicy
    log: ChannelLog

    def read(self, target: str) -> bytes:
        """The content of a target, verified.

        Args:
            target: TUF's path of it: releases.json, bundles/<bundle>/tflite, ...

        Raises:
            ChannelError: there is no such target, its file is gone, or it isn't what was signed.
        """
        return read_target(self.storage, self.name, self.targets.signed, target)

    def expired(self, now: datetime) -> tuple[str, ...]:
        """The roles whose metadata devices no longer accept."""
        roles = (self.root.signed, self.targets.signed, self.snapshot.signed, self.timestamp.signed)
        return tuple(signed.type for signed in roles if signed.is_expired(now))


def channel_exists(storage: Storage, name: str) -> bool:
    """Whether there is a channel, a damaged one too; what a creation left that was cut short is none."""
    files = storage.list(f"{name}/metadata")
    return metadata_path(name, "timestamp") in files or any(_LATER.fullmatch(path.rpartition("/")[2]) for path in files)


def open_channel(storage: Storage, name: str, keyring: Keyring | None = None) -> Channel:
    """Reads a channel. Expired metadata opens as well: renewing them needs that.

    Args:
        storage: where channels lie.
        name: of the channel.
        keyring: says which first root the channel has; whoever signs, or hands on what the channel holds, must give it. None: to look
            at it alone, whatever root lies there.

    Raises:
        ChannelError: there is no such channel, or something in it isn't what its keys signed.
    """
    timestamp_file = metadata_path(name, "timestamp")
    try:
        content = storage.read(timestamp_file)
    except FileNotFoundError:
        if channel_exists(storage, name):
            raise ChannelError(f"{storage.describe(timestamp_file)}: missing; the channel is damaged, restore it from a copy") from None
        raise ChannelError(f"{storage.describe(name)}: no channel; make it with `tfx-edge channel init`") from None
    root = open_root(storage, name, keyring)
    timestamp = verified(root.signed, Timestamp, content, storage.describe(timestamp_file))
    snapshot = _numbered(storage, name, root.signed, Snapshot, timestamp.signed.snapshot_meta.version)
    try:
        version = snapshot.signed.meta["targets.json"].version
    except KeyError:
        raise ChannelError(f"{storage.describe(name)}: the snapshot names no targets; the channel is damaged") from None
    targets = _numbered(storage, name, root.signed, Targets, version)

    def document(target: str, contract: type[Document]) -> Document:
        try:
            return contract.from_json(read_target(storage, name, targets.signed, target))
        except ConfigError as error:
            raise ChannelError(f"{storage.describe(name)}: {target}: {error}") from None

    index, policy, log = document(RELEASES, ReleaseIndex), document(POLICY, ChannelPolicy), document(LOG, ChannelLog)
    if index.channel != name:
        raise ChannelError(f"{storage.describe(name)}: it is the channel {index.channel}; a channel's folder bears its name")
    return Channel(storage, name, root, targets, snapshot, timestamp, index, policy, log)


def verify_files(channel: Channel) -> None:
    """Verifies every file that the channel vouches for.

    Raises:
        ChannelError: one is missing, or isn't what was signed.
    """
    for target in channel.targets.signed.targets:
        channel.read(target)
    require_files(channel.index, channel.targets.signed, channel.storage.describe(channel.name))


def require_files(index: ReleaseIndex, targets: Targets, what: str) -> None:
    """Checks that every release's files are the targets of their names.

    Raises:
        ChannelError: one isn't.
    """
    for release in index.releases:
        for file in release.files:
            signed = targets.targets.get(release.target_path(file))
            if signed is None or signed.hashes.get("sha256") != file.digest or signed.length != file.size_bytes:
                raise ChannelError(f"{what}: release {release.number} names a {file.path} that isn't among the files that are signed")


def trusted_root(root: Root) -> TrustedRoot:
    """What a keyring keeps of a first root."""
    return TrustedRoot(keys=tuple(sorted(root.roles["root"].keyids)), threshold=root.roles["root"].threshold)


def open_root(storage: Storage, name: str, keyring: Keyring | None = None) -> Metadata[Root]:
    """The newest root, each verified by the one before it, the first by itself and by the keyring, where one is given."""
    root = _parsed(Root, _read(storage, metadata_path(name, "root", 1)), storage.describe(metadata_path(name, "root", 1)))
    _verify(root.signed, Root, root, storage.describe(metadata_path(name, "root", 1)))
    if keyring is not None and name not in keyring.roots:
        raise ChannelError(f"{storage.describe(name)}: the keyring doesn't know this channel's root; see `tfx-edge channel trust`")
    if keyring is not None and keyring.roots[name] != trusted_root(root.signed):
        raise ChannelError(f"{storage.describe(name)}: its first root isn't the one that the keyring trusts; restore it from a copy")
    while True:
        path = metadata_path(name, "root", root.signed.version + 1)
        try:
            content = storage.read(path)
        except FileNotFoundError:
            return root
        root = verified_root(root, content, storage.describe(path))


def verified_root(root: Metadata[Root], content: bytes, what: str) -> Metadata[Root]:
    """The root that follows another one: signed by the keys of both.

    Raises:
        ChannelError: it doesn't follow.
    """
    following = verified(root.signed, Root, content, what)
    _verify(following.signed, Root, following, what)
    if following.signed.version != root.signed.version + 1:
        raise ChannelError(f"{what}: it is version {following.signed.version}; expected {root.signed.version + 1}")
    return following


def verified(root: Root, role: type[T], content: bytes, what: str) -> Metadata[T]:
    """Parses a role's metadata that the root's keys for it have signed.

    Raises:
        ChannelError: they are damaged, or not signed by enough keys.
    """
    metadata = _parsed(role, content, what)
    _verify(root, role, metadata, what)
    return metadata


def read_target(storage: Storage, name: str, targets: Targets, target: str) -> bytes:
    """As `Channel.read`, while it is opened."""
    info = targets.targets.get(target)
    if info is None or "sha256" not in info.hashes:
        raise ChannelError(f"{storage.describe(name)}: has no {target}, or not by its sha256")
    path = target_path(name, info)
    content = _read(storage, path, info.length + 1)
    try:
        info.verify_length_and_hashes(content)
    except RepositoryError as error:
        raise ChannelError(f"{storage.describe(path)}: {' '.join(str(error).split())}; it isn't what was signed") from None
    return content


def metadata_path(name: str, role: str, version: int | None = None) -> str:
    """Where a role's metadata lie; the timestamp's without a version."""
    return f"{name}/metadata/{role}.json" if version is None else f"{name}/metadata/{version}.{role}.json"


def target_path(name: str, info: TargetFile) -> str:
    """Where a target's content lies: TUF puts its sha256 before the name, so that a new content never replaces an old one."""
    folder, _, base = info.path.rpartition("/")
    return "/".join(part for part in (name, "targets", folder, f"{info.hashes['sha256']}.{base}") if part)


def target_info(path: str, content: bytes) -> TargetFile:
    """TUF's entry of a file."""
    return TargetFile(len(content), {"sha256": hashlib.sha256(content).hexdigest()}, path)


def utc_now() -> datetime:
    """Without fractions of a second, which TUF's metadata don't have."""
    return datetime.now(timezone.utc).replace(microsecond=0)


def _numbered(storage: Storage, name: str, root: Root, role: type[T], version: int) -> Metadata[T]:
    path = metadata_path(name, role.type, version)
    metadata = verified(root, role, _read(storage, path), storage.describe(path))
    if metadata.signed.version != version:
        raise ChannelError(f"{storage.describe(path)}: it is version {metadata.signed.version}; expected {version}")
    return metadata


def _read(storage: Storage, path: str, at_most: int | None = None) -> bytes:
    try:
        return storage.read(path, at_most)
    except FileNotFoundError:
        raise ChannelError(f"{storage.describe(path)}: missing; the channel is damaged, restore it from a copy") from None


def _parsed(role: type[T], content: bytes, what: str) -> Metadata[T]:
    try:
        metadata: Metadata[T] = Metadata.from_bytes(content)
    except RepositoryError as error:
        raise ChannelError(f"{what}: no TUF metadata: {' '.join(str(error).split())}") from None
    if metadata.signed.type != role.type:
        raise ChannelError(f"{what}: it is metadata of {metadata.signed.type}; expected {role.type}")
    return metadata


def _verify(root: Root, role: type[T], metadata: Metadata[T], what: str) -> None:
    try:
        root.verify_delegate(role.type, metadata.signed_bytes, metadata.signatures)
    except (RepositoryError, ValueError) as error:
        raise ChannelError(f"{what}: {' '.join(str(error).split())}; it isn't what the channel's keys signed") from None

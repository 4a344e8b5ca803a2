"""The reference client: keeps a device's model at what its release channel offers, and a verified model running whatever happens."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from tfx_edge.device import trial
from tfx_edge.device.bundle import damage, mismatch
from tfx_edge.device.channel import Channel
from tfx_edge.device.errors import DeviceError, RefusedError, one_line
from tfx_edge.device.health import Health
from tfx_edge.device.store import Store, Version
from tfx_edge.device.trials import tried
from tfx_edge.schemas.device import DeviceConfig, DeviceState, DeviceStatus, Verdict
from tfx_edge.schemas.health import Enrolment
from tfx_edge.schemas.release import Release

_MARGIN_BYTES = 2**20
"""Room for metadata, state and reports, beside a release's files."""

_MOST_VERDICTS = 100


@dataclass(frozen=True)
class Outcome:
    """What came of an update or a check.

    Attributes:
        kind: `updated`; `current`, there is nothing newer, or nothing is wrong; `refused`, the release on offer isn't fit for the device;
            `reverted`, the model that ran is no longer fit and the last good one runs.
        message: one line for a person.
        release: that runs now; None: none does.
    """

    kind: Literal["updated", "current", "refused", "reverted"]
    message: str
    release: int | None

    @property
    def exit_status(self) -> int:
        """0: all is well; 2: a model failed, and the last good one is kept."""
        return 0 if self.kind in ("updated", "current") else 2


class Device:
    """A device that follows a release channel.

    Example of use:
        device = Device(DeviceConfig.from_json(Path("device.json").read_bytes()))
        device.update()
        interpreter = Interpreter(str(device.current() / "tflite"))

    Args:
        config: who it is, and which channel it follows.
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self._store = Store(Path(config.state).absolute())
        self._health = Health(config, self._store)
        self._platform = trial.platform(config.info)

    def current(self) -> Path | None:
        """Folder of the bundle that runs: `tflite`, `edge/manifest.json`, ... Stays where it is for one more update at least.

        Returns:
            None where there is none yet, or no good one any more.
        """
        version = self._store.current()
        return None if version is None else version.folder

    def update(self) -> Outcome:
        """Takes what the channel offers, after a look at whether the model that runs is undamaged; then reports.

        Raises:
            DeviceError: the update can't be made now, or another one is running; what runs goes on running.
        """
        return self._held(self._update, asks_channel=True)

    def check(self) -> Outcome:
        """Tests the model that runs, as after a start or a change of LiteRT; goes back to the last good one where it fails.

        Raises:
            DeviceError: there is no good one, or none can be tested here.
        """
        return self._held(self._check, asks_channel=False)

    def report(self) -> str | None:
        """Sends the health reports that wait. Returns why some are left; None where none are.

        Raises:
            DeviceError: an update is running, or the disk is full.
        """
        try:
            with self._store.locked():
                self._health.report(self._store.state())
                return self._health.deliver()
        except OSError as error:
            raise _disk(error) from error

    def identity(self) -> Enrolment:
        """The device's id and public key, for a fleet key to sign.

        Raises:
            DeviceError: the key can't be read or made.
        """
        try:
            with self._store.locked():
                return self._health.identity()
        except OSError as error:
            raise _disk(error) from error

    def status(self) -> DeviceStatus:
        """What the device runs, and what has come of updates; changes nothing."""
        current, state = self._store.current(), self._store.state()
        return DeviceStatus(
            device=self.config.info,
            channel=self.config.channel,
            release=None if current is None else current.release.number,
            bundle=None if current is None else current.release.bundle,
            folder=None if current is None else str(current.folder),
            versions=tuple(version.release.number for version in self._store.versions()),
            failed=tuple(verdict for verdict in state.verdicts if verdict.status == "failed"),
            reports=self._health.obstacle() or f"sent to {self.config.reports_to}",
            waiting_reports=len(self._health.waiting()),
            last_update=state.last_update,
            last_message=state.last_message,
        )

    def _held(self, work: Callable[[], Outcome], *, asks_channel: bool) -> Outcome:
        """Does the work under the lock, remembers what came of it and reports, also where it failed."""
        try:
            with self._store.locked():
                try:
                    outcome = work()
                except (DeviceError, OSError) as error:
                    self._conclude(one_line(error), asks_channel)
                    raise
                self._conclude(outcome.message, asks_channel)
                return outcome
        except OSError as error:
            raise _disk(error) from error

    def _conclude(self, message: str, asks_channel: bool) -> None:
        try:
            state = self._store.state()
            if asks_channel:
                state = state.model_copy(update={"last_update": datetime.now(timezone.utc), "last_message": message})
                self._store.remember(state)
            self._health.report(state)
            self._health.deliver()
        except (DeviceError, OSError):  # what was to be told is told by the caller; it is remembered and reported next time
            return

    def _check(self) -> Outcome:
        lost = self._settle(self._unfit)
        current = self._store.current()
        if current is None:
            raise DeviceError(f"no model runs{_after(lost)}; run update")
        if lost:
            return Outcome("reverted", f"went back to release {current.release.number}{_after(lost)}", current.release.number)
        return Outcome("current", f"release {current.release.number} is undamaged and passes its self-test", current.release.number)

    def _update(self) -> Outcome:
        lost = self._settle(lambda version: None if self._proven(version) else self._unfit(version))
        current = self._store.current()
        number = None if current is None else current.release.number
        try:
            channel = Channel(self.config, self._store.metadata)
        except DeviceError as error:
            runs = "no model runs" if number is None else f"release {number} runs"
            raise DeviceError(f"{error} ({runs}{_after(lost)})") from error
        newer = [
            release
            for release in channel.index.releases
            if release.admits(self.config.info) and (current is None or release.number > current.release.number)
        ]
        if not newer:
            self._store.prune(self.config.keep_versions)
            what = "nothing is offered to this device" if number is None else f"release {number} runs, nothing newer is offered"
            return Outcome("reverted" if lost else "current", f"{what}{_after(lost)}", number)
        refused: list[str] = []
        for offered in newer:  # where the newest fails, the one before it may do
            try:
                self._install(channel, offered)
            except RefusedError as error:
                refused.append(f"release {offered.number} refused: {error}")
                continue
            before = "" if number is None else f" from release {number}"
            message = f"updated to release {offered.number}{before}{_after([*lost, *refused])}"
            return Outcome("refused" if refused else "updated", message, offered.number)
        kept = "there is none to keep" if number is None else f"release {number} is kept"
        return Outcome("refused", f"{'; '.join(refused)}; {kept}{_after(lost)}", number)

    def _install(self, channel: Channel, release: Release) -> None:
        self._refuse_unseen(release)
        self._require_room(release)
        folder = self._store.download_folder(release)
        for file in release.files:
            self._store.copy_of(file, folder / file.path)
            channel.fetch(release, file, folder / file.path)
        reason = damage(folder, release)
        if reason is not None:
            raise DeviceError(f"{folder}: {reason}, although it was verified a moment ago; the disk may be failing")
        reason = mismatch(folder, release, self.config.info) or tried(self._store, folder, release, self.config.selftest_seconds)
        if reason is not None:
            self._judge(release, reason)
            self._store.discard(release)
            raise RefusedError(reason)
        self._store.activate(self._store.adopt(folder, release))
        self._judge(release)
        self._store.prune(self.config.keep_versions)

    def _refuse_unseen(self, release: Release) -> None:
        """Refuses what needs no download to be known unfit."""
        size = sum(file.size_bytes for file in release.files)
        if size > self.config.max_bundle_bytes:
            reason = f"it has {size} bytes, this device takes {self.config.max_bundle_bytes}"
            self._judge(release, reason, tried=False)
            raise RefusedError(reason)
        for verdict in reversed(self._store.state().verdicts):
            if verdict.bundle == release.bundle and verdict.platform == self._platform and verdict.status == "failed" and verdict.tried:
                self._judge(release, verdict.reason)
                raise RefusedError(f"{verdict.reason}; it failed here before and isn't tried again")

    def _require_room(self, release: Release) -> None:
        need, free = self._store.missing_bytes(release) + _MARGIN_BYTES, shutil.disk_usage(self._store.folder).free
        if need > free:
            raise DeviceError(f"{self._store.folder}: release {release.number} needs {need} bytes, {free} are free; make room")

    def _settle(self, flaw: Callable[[Version], str | None]) -> list[str]:
        """Lets the current version be one that `_undamaged` and `flaw` find nothing wrong with, and removes those with something.

        Returns:
            What was found wrong.
        """
        current = self._store.current()
        others = [version for version in self._store.versions() if current is None or version.folder != current.folder]
        if current is not None:
            others = [version for version in others if version.release.number != current.release.rollback_of]
        flawed: list[Version] = []
        lost = ["the current version can't be read"] if current is None and self._store.has_current() else []
        good: Version | None = None
        for version in [*([current] if current else []), *others]:
            reason = damage(version.folder, version.release) or flaw(version)
            if reason is None:
                good = version
                break
            flawed.append(version)
            lost.append(f"release {version.release.number}: {reason}")
        if good is None or current is None or good.folder != current.folder:
            self._store.activate(good)
        for version in flawed:
            self._store.drop(version)
        return lost

    def _proven(self, version: Version) -> bool:
        """Whether a version passed its self-test on this platform: not so after a change of LiteRT, or where the state was lost."""
        verdicts = self._store.state().verdicts
        return any(v.bundle == version.release.bundle and v.platform == self._platform and v.status == "healthy" for v in verdicts)

    def _unfit(self, version: Version) -> str | None:
        reason = tried(self._store, version.folder, version.release, self.config.selftest_seconds)
        self._judge(version.release, reason or "")
        return reason

    def _judge(self, release: Release, reason: str = "", *, tried: bool = True) -> None:
        """Remembers what became of a release, once."""
        verdict = Verdict(
            release=release.number,
            bundle=release.bundle,
            platform=self._platform,
            status="failed" if reason else "healthy",
            reason=reason,
            tried=tried,
        )
        state: DeviceState = self._store.state()
        same = [known for known in state.verdicts if known.release == release.number]
        if same and same[-1].model_copy(update={"reported": False}) == verdict:
            return
        verdicts = (*(known for known in state.verdicts if known not in same), verdict)[-_MOST_VERDICTS:]
        self._store.remember(state.model_copy(update={"verdicts": verdicts}))


def _after(lost: list[str]) -> str:
    return f", after {'; '.join(lost)}" if lost else ""


def _disk(error: OSError) -> DeviceError:
    where = f"{error.filename}: " if error.filename else ""
    return DeviceError(f"{where}{error.strerror or one_line(error)}; make room or mend the disk, what runs goes on running")

"""Signed health reports: made once for each verdict, kept until they are delivered. Nothing here ever fails an update."""

import copy
import json
import time
from datetime import datetime, timezone
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner
from tuf.api.exceptions import DownloadError

from tfx_edge.device import files
from tfx_edge.device.errors import DeviceError, one_line
from tfx_edge.device.fetch import put
from tfx_edge.device.store import Store
from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.device import DeviceConfig, DeviceState, Verdict, is_url
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.health import ENROLMENT_TYPE, HEALTH_TYPE, Enrolment, HealthReport, SignedReport

_MOST_WAITING = 100
"""Reports that are kept for later; older ones go first."""


class Health:
    """The device's side of health reports.

    Args:
        config: the device's.
        store: its folder.
    """

    def __init__(self, config: DeviceConfig, store: Store) -> None:
        self._config, self._store = config, store
        self._key = store.folder / "key.pem"

    def identity(self) -> Enrolment:
        """What a fleet key has to sign, so that the device's reports count. Makes the device's key where there is none.

        Raises:
            DeviceError: the key can't be read.
        """
        if not self._key.exists():
            files.make_folder(self._key.parent)
            files.write(self._key, CryptoSigner.generate_ed25519().private_bytes, mode=0o600)
        return self._identity()

    def obstacle(self) -> str | None:
        """Why no reports are made; None where they are."""
        try:
            self._enrolment()
        except DeviceError as error:
            return str(error)
        return None if self._config.reports_to else "no place to report to; give the device's config health"

    def report(self, state: DeviceState) -> DeviceState:
        """Makes a report of each verdict that has none, and puts it into the outbox.

        Args:
            state: as it is remembered.

        Returns:
            The state as it is remembered now.

        Raises:
            DeviceError: the device's key can't be read.
            OSError: the disk is full.
        """
        self.identity()
        if all(verdict.reported for verdict in state.verdicts) or self.obstacle() is not None:
            return state
        enrolment, signer = self._enrolment(), self._signer()
        files.make_folder(self._store.outbox)
        for number, verdict in enumerate(state.verdicts):
            if verdict.reported:
                continue
            # Not from 1: a device whose state was lost goes on above what it has sent before.
            sequence = max(state.sequence + 1, time.time_ns() // 1_000_000, *(int(path.stem) + 1 for path in self.waiting()), 1)
            report = self._signed(verdict, sequence, enrolment, signer)
            files.write(self._store.outbox / f"{sequence}.json", report.to_json().encode())
            verdicts = list(state.verdicts)
            verdicts[number] = verdict.model_copy(update={"reported": True})
            state = state.model_copy(update={"sequence": sequence, "verdicts": tuple(verdicts)})
            self._store.remember(state)
        return state

    def deliver(self) -> str | None:
        """Sends what waits, the oldest first. Returns why something is left; None where nothing is."""
        place = self._config.reports_to
        waiting = self.waiting()
        for path in waiting[:-_MOST_WAITING]:
            files.remove(path)
        for path in waiting[-_MOST_WAITING:] if place else ():
            try:
                self._send(path, f"{place}/{self._config.device_id}/{path.name}")
                files.remove(path)
            except (DeviceError, DownloadError, OSError) as error:
                return f"health reports wait: {one_line(error)}"
        return None

    def waiting(self) -> list[Path]:
        """Reports in the outbox, the oldest first."""
        numbered = [path for path in self._store.outbox.glob("*.json") if path.stem.isdigit()]
        return sorted(numbered, key=lambda path: int(path.stem))

    def _send(self, path: Path, to: str) -> None:
        if is_url(to):
            put(to, path.read_bytes())
            return
        target = Path(to)
        place = target.parent.parent
        if not place.parent.is_dir():  # a disk that isn't mounted: below its mount point reports would be lost
            raise DeviceError(f"{place.parent}: no such folder")
        files.make_folder(target.parent)
        files.write(target, path.read_bytes())

    def _signed(self, verdict: Verdict, sequence: int, enrolment: dict[str, object], signer: CryptoSigner) -> SignedReport:
        report = HealthReport(
            device=self._config.info,
            channel=self._config.channel,
            release=verdict.release,
            bundle=verdict.bundle,
            status=verdict.status,
            reason=verdict.reason[:1000],
            sequence=sequence,
            time=datetime.now(timezone.utc),
        )
        envelope = Envelope(report.to_json().encode(), HEALTH_TYPE, {})
        envelope.sign(signer)
        return SignedReport(report=envelope.to_dict(), enrolment=enrolment)

    def _signer(self) -> CryptoSigner:
        try:
            return CryptoSigner(load_pem_private_key(self._key.read_bytes(), None))
        except FileNotFoundError:
            raise DeviceError(f"{self._key}: not there yet; the first update makes it") from None
        except (OSError, ValueError, TypeError) as error:
            raise DeviceError(f"{self._key}: {one_line(error)}; remove it, and enrol the device anew") from error

    def _identity(self) -> Enrolment:
        key = self._signer().public_key
        public = PublicKey(keytype=key.keytype, scheme=key.scheme, public=key.keyval["public"])
        return Enrolment(device_id=self._config.device_id, key=public)

    def _enrolment(self) -> dict[str, object]:
        path = Path(self._config.enrolment or self._store.folder / "enrolment.json")
        try:
            document: dict[str, object] = json.loads(path.read_bytes())
            envelope = Envelope.from_dict(copy.deepcopy(document))  # which it changes
            enrolment = Enrolment.from_json(envelope.payload)
        except OSError as error:
            raise DeviceError(f"enrolment {path}: {error.strerror}; have a fleet key sign what `identity` prints") from None
        except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
            raise DeviceError(f"enrolment {path}: {one_line(error)}; expected the envelope of an Enrolment") from None
        if envelope.payload_type != ENROLMENT_TYPE or enrolment != self._identity():
            raise DeviceError(f"enrolment {path}: of another device or key; have a fleet key sign what `identity` prints")
        return document

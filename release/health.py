"""What devices say of the releases they run. Only what a device of the fleet signed counts."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import Key

from tfx_edge.release.channel import Channel
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.keys import key_of, load_plugins, public_key_of, signers_for
from tfx_edge.schemas.channel_policy import PublicKey
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.health import ENROLMENT_TYPE, HEALTH_TYPE, Enrolment, HealthReport, SignedReport
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import Release

MAX_REPORT_BYTES = 64 * 1024
"""A report has about 2 KB; a device can't make the channel's machine read more than this."""


@dataclass(frozen=True)
class Counts:
    """Devices that reported on a release."""

    healthy: int = 0
    failed: int = 0

    @property
    def reports(self) -> int:
        return self.healthy + self.failed

    @property
    def failure_rate(self) -> float:
        """Failed devices by reporting ones; 0 without any."""
        return self.failed / self.reports if self.reports else 0.0


@dataclass(frozen=True)
class Health:
    """All reports on what a channel offers.

    Attributes:
        reports: the latest of each device, by its id, by the release's number.
        refused: files that count for nothing, and why.
        superseded: files that newer ones have replaced, or of releases that are no longer on offer.
    """

    reports: Mapping[int, Mapping[str, HealthReport]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    superseded: tuple[str, ...] = ()

    def counts(self, release: int) -> Counts:
        """How many devices run a release well, and how many don't."""
        states = [report.status for report in self.reports.get(release, {}).values()]
        return Counts(states.count("healthy"), states.count("failed"))


def read_health(channel: Channel) -> Health:
    """Reads the reports that devices dropped in a channel's health/ folder.

    A file counts where a fleet key of the policy vouches for the device, the device's key signed the report, and the release is one that
    the device is offered. Whatever else lies there is named in `refused` and stops nothing.
    """
    fleet = [key_of(key) for key in channel.policy.fleet_keys]
    releases = {release.number: release for release in channel.index.releases}
    latest: dict[int, dict[str, tuple[HealthReport, str]]] = {number: {} for number in releases}
    refused: dict[str, str] = {}
    superseded: list[str] = []
    for path in channel.storage.list(f"{channel.name}/health"):
        try:
            report = _verified(channel, path, fleet)
            if report.release in channel.log.releases and report.release not in releases:
                superseded.append(path)
                continue
            _check_release(report, releases.get(report.release))
        except (ChannelError, ConfigError) as error:
            refused[path] = str(error)
            continue
        of_release = latest[report.release]
        known = of_release.get(report.device.device_id)
        if known is None or known[0].sequence < report.sequence:
            of_release[report.device.device_id] = (report, path)
            superseded.extend([known[1]] if known else [])
        else:
            superseded.append(path)
    reports = {number: {device: report for device, (report, _) in devices.items()} for number, devices in latest.items()}
    return Health(reports, refused, tuple(superseded))


def enrol(device_id: str, key: PublicKey, keyring: Keyring, fleet_keys: Sequence[PublicKey]) -> dict[str, object]:
    """Vouches for a device: an envelope that the device sends along with its reports.

    Args:
        device_id: of the device.
        key: its public key.
        keyring: its first key that is a fleet key signs.
        fleet_keys: those of the policies of the channels that the device follows.

    Raises:
        ChannelError: the keyring has none of the fleet keys, or one can't be read; `key` is none.
        ConfigError: the id can't be a device's.
    """
    enrolment = Enrolment(device_id=device_id, key=public_key_of(key_of(key)))
    load_plugins(keyring)
    signers = signers_for(keyring.fleet, {known.keyid: known for known in map(key_of, fleet_keys)})
    if not signers:
        raise ChannelError("the keyring has none of the fleet keys that the policy trusts; devices are enrolled where one is")
    envelope = Envelope(enrolment.to_json().encode(), ENROLMENT_TYPE, {})
    envelope.sign(signers[0])
    document: dict[str, object] = envelope.to_dict()
    return document


def _verified(channel: Channel, path: str, fleet: Sequence[Key]) -> HealthReport:
    """A report that the device whose folder it lies in has signed."""
    try:
        content = channel.storage.read(path, MAX_REPORT_BYTES + 1)
    except OSError as error:
        raise ChannelError(f"can't be read: {error.strerror}") from None
    if len(content) > MAX_REPORT_BYTES:
        raise ChannelError(f"larger than {MAX_REPORT_BYTES} bytes")
    signed = SignedReport.from_json(content)
    if not fleet:
        raise ChannelError("the policy has no fleet keys, which vouch for devices")
    enrolment = Enrolment.from_json(_payload(signed.enrolment, ENROLMENT_TYPE, fleet, "the enrolment isn't signed by a fleet key"))
    if enrolment.device_id in channel.policy.revoked_devices:
        raise ChannelError(f"device {enrolment.device_id} is revoked")
    key = key_of(enrolment.key)
    report = HealthReport.from_json(_payload(signed.report, HEALTH_TYPE, [key], "the report isn't signed by the enrolled device's key"))
    of_the_folder = path.startswith(f"{channel.name}/health/{enrolment.device_id}/")
    if report.device.device_id != enrolment.device_id or not of_the_folder:
        raise ChannelError(f"report of {report.device.device_id}, enrolment of {enrolment.device_id}; expected the folder's device in both")
    if path.rpartition("/")[2] != f"{report.sequence}.json" or path.count("/") != 3:
        raise ChannelError(f"report {report.sequence} of the device; expected it in a file of that number")
    if report.channel != channel.name:
        raise ChannelError(f"report on the channel {report.channel}")
    return report


def _payload(document: Mapping[str, object], payload_type: str, keys: Sequence[Key], otherwise: str) -> bytes:
    try:
        envelope = Envelope.from_dict(deepcopy(dict(document)))  # which it changes
        if envelope.payload_type != payload_type:
            raise ChannelError(f"an envelope of {envelope.payload_type!r:.100}; expected {payload_type}")
        envelope.verify(list(keys), 1)
    except VerificationError:
        raise ChannelError(otherwise) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # what isn't an envelope at all
        raise ChannelError(f"no DSSE envelope: {type(error).__name__}") from None
    return bytes(envelope.payload)


def _check_release(report: HealthReport, release: Release | None) -> None:
    if release is None:
        raise ChannelError(f"release {report.release} was never offered")
    if report.bundle != release.bundle:
        raise ChannelError(f"release {report.release} has another bundle")
    if not release.admits(report.device):
        raise ChannelError(f"release {report.release} isn't for this device")

"""Channels with rules and devices that report, for tests of what channels do by themselves."""

from datetime import timedelta

from release_channels import START, Fleet

from tfx_edge.release.health import Counts
from tfx_edge.release.rules import Judgement, judge
from tfx_edge.release.tick import tick
from tfx_edge.schemas import BundleFile, ChannelPolicy, DeviceInfo, EmergencyStop, HealthRule, PublicKey, Release, RolloutStep

RULE = HealthRule(min_age_hours=24, min_healthy_devices=2, max_failure_rate=0.1)
STEPS = (RolloutStep(share=0.25, go_on=RULE), RolloutStep(share=1, go_on=RULE))
STOP = EmergencyStop(max_failure_rate=0.4, min_reports=3)
POLICY = ChannelPolicy(steps=STEPS, promote_to="beta", emergency_stop=STOP)
POLICIES = {
    "canary": POLICY,
    "beta": ChannelPolicy(steps=(RolloutStep(share=1, go_on=RULE),), promote_to="stable", emergency_stop=STOP),
    "stable": ChannelPolicy(emergency_stop=STOP),
}
NAMES = tuple(POLICIES)
HEARD = POLICY.model_copy(update={"fleet_keys": (PublicKey(public="0" * 64),)})
"""With a key that vouches for devices, as `create` adds one."""

FILES = tuple(BundleFile(path=path, digest="0" * 64, size_bytes=1) for path in ("tflite", "edge/manifest.json", "edge/golden.npz"))
RELEASE = Release(number=3, bundle="a" * 64, files=FILES, share=0.25, published=START, share_since=START)


def release(**changes) -> Release:
    """A release that no channel has, on the first of two steps."""
    return RELEASE.model_copy(update=changes)


def judged(
    one: Release = RELEASE, policy: ChannelPolicy = HEARD, hours: float = 25.0, healthy: int = 2, failed: int = 0, **options
) -> Judgement:
    """What the policy says some hours after the release got its share."""
    return judge(one, policy, Counts(healthy, failed), START + timedelta(hours=hours), **options)


def admitted(one: Release, count: int, *, others: tuple[Release, ...] = (), region: str = "") -> list[str]:
    """Ids of devices that a release is for, and that none of some other releases is for."""
    found: list[str] = []
    for i in range(10_000):
        device = DeviceInfo(device_id=f"device-{i}", runtime="2.21.0", region=region)
        if one.admits(device) and not any(other.admits(device) for other in others):
            found.append(device.device_id)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} devices among 10,000")


def ticked(fleet: Fleet, *names: str) -> list[tuple[str, str]]:
    """What a tick did, but signing anew."""
    actions = tick(fleet.storage, names or NAMES, fleet.keyring, now=fleet.now, who="clock")
    return [(action.channel, action.action) for action in actions if action.action != "renew"]


def served(fleet: Fleet, name: str) -> None:
    """A day passes, and devices report well on the newest release of a channel."""
    fleet.later(hours=25)
    newest = fleet.open(name).index.releases[0]
    for device in admitted(newest, 2):
        fleet.report(newest, device, name=name)


def fails(fleet: Fleet, one: Release, name: str = "canary", others: tuple[Release, ...] = ()) -> None:
    """Enough devices say that a release fails for the policies here to stop it."""
    for device in admitted(one, 3, others=others):
        fleet.report(one, device, "failed", name=name)


def on_offer(fleet: Fleet, name: str = "canary") -> list[tuple[int, str, float]]:
    """Number, model's version and share of what a channel offers, newest first; a bundle of `release_channels` has its seed as version."""
    channel = fleet.open(name)
    found = []
    for one in channel.index.releases:
        [manifest] = (file for file in one.files if file.path == "edge/manifest.json")
        version = channel.read(one.target_path(manifest)).decode().split('"version": "')[1].split('"')[0]
        found.append((one.number, version, one.share))
    return found

"""Whatever is done to channels, in any order: they verify, numbers rise, and what was stopped never comes back."""

import shutil
import tempfile
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from release_channels import Device, Fleet, plain_bundle
from ruled_channels import NAMES, STOP

from tfx_edge.release.channel import verify_files
from tfx_edge.release.errors import ChannelError
from tfx_edge.release.expire import expire
from tfx_edge.release.promote import promote
from tfx_edge.release.rollback import rollback, stop
from tfx_edge.release.tick import tick
from tfx_edge.schemas import ChannelPolicy, Cohort, DeviceInfo, HealthRule, Release, RolloutStep

RULE = HealthRule(min_age_hours=5, min_healthy_devices=1, max_failure_rate=0.3)
FOLLOWING = dict(zip(NAMES, (*NAMES[1:], None), strict=True))
POLICIES = {
    name: ChannelPolicy(
        steps=(RolloutStep(share=0.4, go_on=RULE), RolloutStep(share=1, go_on=RULE)), promote_to=to, emergency_stop=STOP, keep_bundles=2
    )
    for name, to in FOLLOWING.items()
}
COHORTS = (Cohort(), Cohort(regions=("eu",)))
DEVICES = [DeviceInfo(device_id=f"device-{i}", runtime="2.21.0", region=("eu", "us")[i % 2]) for i in range(12)]
NAME, WHICH = st.sampled_from(NAMES), st.integers(0, 3)


@cache
def empty_channels() -> tempfile.TemporaryDirectory:
    """Made once, for keys take longer than all the rest; removed when Python ends."""
    folder = tempfile.TemporaryDirectory(prefix="channels-")
    Fleet(Path(folder.name)).create(*NAMES, policies=POLICIES)
    return folder


class Channels(RuleBasedStateMachine):
    """A row of channels and devices that follow them; `stopped` is this test's own record."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="channels-"))
        shutil.copytree(empty_channels().name, self.folder, dirs_exist_ok=True)
        self.fleet = Fleet(self.folder)
        self.fleet.devices = {device.device_id: Device(device) for device in DEVICES}
        self.stopped: dict[str, set[str]] = {name: set() for name in NAMES}
        self.runs: dict[tuple[str, str], Release] = {}
        self.highest = dict.fromkeys(NAMES, 0)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def _try(self, change, *arguments, **options):
        """Makes a change; one that is refused must change nothing."""
        before = self._stands()
        try:
            return change(*arguments, **options)
        except ChannelError as error:
            assert "\n" not in str(error) and self._stands() == before
            return None

    def _stands(self) -> list[bytes]:
        return [(self.folder / "channels" / name / "metadata" / "timestamp.json").read_bytes() for name in NAMES]

    def _offered(self, name: str, which: int) -> int | None:
        releases = self.fleet.open(name).index.releases
        return releases[which % len(releases)].number if releases else None

    @rule(name=NAME, seed=st.integers(1, 6), cohort=st.sampled_from(COHORTS))
    def publish(self, name, seed, cohort) -> None:
        made = plain_bundle(seed)
        published = self._try(self.fleet.publish, made, name, cohort=cohort)
        assert published is None or made.digest not in self.stopped[name]

    @rule(source=NAME, destination=NAME, which=WHICH)
    def promote(self, source, destination, which) -> None:
        made = self._try(
            promote, self.fleet.storage, source, destination, self.fleet.keyring,
            release=self._offered(source, which), force=True, reason="a test", now=self.fleet.now,
        )  # fmt: skip
        before = NAMES[: NAMES.index(destination) + 1]
        assert made is None or not made.changed or not any(made.release.bundle in self.stopped[name] for name in before)

    @rule(name=NAME, which=WHICH)
    def roll_back(self, name, which) -> None:
        taken = self._offered(name, which)
        made = self._try(rollback, self.fleet.storage, name, self.fleet.keyring, release=taken, now=self.fleet.now)
        assert made is None or (made.release.rollback_of == taken and made.release.bundle not in self.stopped[name])

    @rule(name=NAME, which=WHICH)
    def stop(self, name, which) -> None:
        channel, number = self.fleet.open(name), self._offered(name, which)
        if number is None:
            return
        bundle = channel.log.releases[number].bundle
        before = {device.device_id: channel.index.offered(device) for device in DEVICES}
        stop(self.fleet.storage, name, self.fleet.keyring, release=number, now=self.fleet.now)
        self.stopped[name].add(bundle)
        self._check_stop(name, before, {bundle})

    def _check_stop(self, name: str, before: dict[str, Release | None], bundles: set[str]) -> None:
        """Where devices had a way back they get it, and those that ran something else that all had or were getting keep it."""
        after = self.fleet.open(name)
        returned = [entry.release for entry in after.log.entries if entry.action == "rollback" and entry.time == self.fleet.now]
        unproven = {one.bundle for one in returned if not self._was_for_all(name, one.bundle)}
        for device in DEVICES:
            old, new = before[device.device_id], after.index.offered(device)
            if old is None:
                continue
            if old.bundle not in bundles:
                assert new is not None and (new.bundle == old.bundle or new.bundle in unproven)
                assert new.number >= old.number
            elif new is not None and any(one.cohort.admits(device) for one in returned if one.rollback_of == old.number):
                assert new.number > old.number, "so that the device takes it"

    def _was_for_all(self, name: str, bundle: str) -> bool:
        """Whether a bundle was ever on offer with share 1 other than by a rollback."""
        entries = self.fleet.open(name).log.entries
        return any(
            entry.release.share == 1 and entry.release.rollback_of is None
            for entry in entries
            if entry.release is not None and entry.release.bundle == bundle
        )

    @rule(name=NAME, which=WHICH, age=st.none() | st.sampled_from([0.1, 1.0]))
    def expire(self, name, which, age) -> None:
        chosen = {"older_than_days": age} if age is not None else {"release": self._offered(name, which) or 1}
        self._try(expire, self.fleet.storage, name, self.fleet.keyring, now=self.fleet.now, **chosen)

    @rule(name=NAME, device=st.sampled_from(DEVICES), status=st.sampled_from(["healthy", "healthy", "failed"]))
    def report(self, name, device, status) -> None:
        release = self.runs.get((name, device.device_id))
        if release is not None:
            self.fleet.report(release, device.device_id, status, name=name)

    @rule(name=NAME)
    def the_newest_fails(self, name) -> None:
        for release in self.fleet.open(name).index.releases[:1]:
            for device in DEVICES:
                if release.admits(device):
                    self.fleet.report(release, device.device_id, "failed", name=name)

    @rule()
    def tick(self) -> None:
        actions = tick(self.fleet.storage, NAMES, self.fleet.keyring, now=self.fleet.now)
        assert "failed" not in {action.action for action in actions}
        for action in actions:
            if action.action == "stop":
                self.stopped[action.channel].add(self.fleet.open(action.channel).log.releases[action.release].bundle)
        for name in NAMES:
            before = NAMES[: NAMES.index(name)]
            known = set().union(*(self.stopped[one] for one in before))
            assert not known & {one.bundle for one in self.fleet.open(name).index.releases}, "stopped in a channel before"
        assert tick(self.fleet.storage, NAMES, self.fleet.keyring, now=self.fleet.now) == (), "a second one does nothing"

    @rule(hours=st.sampled_from([1, 6, 30]))
    def time_passes(self, hours) -> None:
        self.fleet.later(hours=hours)

    @rule(late=st.booleans())
    def devices_update(self, late) -> None:
        """Some devices come by at every opportunity and others seldom."""
        for name in NAMES:
            channel = self.fleet.open(name)
            for device in DEVICES[:: 1 if late else 2]:
                offered, current = channel.index.offered(device), self.runs.get((name, device.device_id))
                if offered is not None and (current is None or offered.number > current.number):
                    assert offered.bundle not in self.stopped[name]
                    assert {file.path: channel.read(offered.target_path(file)) for file in offered.files}
                    self.runs[name, device.device_id] = offered

    @invariant()
    def every_channel_verifies_and_is_in_order(self) -> None:
        for name in NAMES:
            channel = self.fleet.open(name)
            verify_files(channel)
            assert not self.stopped[name] & {one.bundle for one in channel.index.releases}
            new = [
                entry.release.number
                for entry in channel.log.entries
                if entry.action in ("publish", "promote", "rollback", "renumber") and entry.release is not None
            ]
            assert all(earlier < later for earlier, later in pairwise(new)), "a number never comes twice"
            assert channel.log.last_number >= self.highest[name]
            self.highest[name] = channel.log.last_number
            assert all(one == channel.log.releases[one.number] for one in channel.index.releases), "the log knows what is on offer"


TestChannels = Channels.TestCase
TestChannels.settings = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=timedelta(minutes=5),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

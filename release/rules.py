"""What a channel's policy says of a release: pure functions of the release, the reports on it and the time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tfx_edge.release.health import Counts
from tfx_edge.schemas.channel_policy import ChannelPolicy, HealthRule, RolloutStep
from tfx_edge.schemas.release import Release


@dataclass(frozen=True)
class Judgement:
    """What is to be done with a release.

    Attributes:
        action: stop takes it back; grow gives it a larger share; promote hands it to the next channel; hold waits; stay has nothing left
            to wait for.
        text: why, in one line.
        share: grow: of the cohort's devices.
    """

    action: Literal["stop", "grow", "promote", "hold", "stay"]
    text: str
    share: float | None = None


def judge(release: Release, policy: ChannelPolicy, counts: Counts, now: datetime, *, newest: bool = True) -> Judgement:
    """Applies the policy to a release on offer.

    Args:
        release: as it stands.
        policy: of its channel.
        counts: devices that reported on it.
        now: UTC.
        newest: whether it is the newest of its cohort: older ones don't grow any more.

    Returns:
        An emergency stop where too many devices failed; else the next step once the current one's rule holds. A release that took
        another one back is for all devices of its channel, and isn't promoted: the other channels have their own.
    """
    stop = policy.emergency_stop
    if counts.reports >= stop.min_reports and counts.failure_rate > stop.max_failure_rate:
        return Judgement("stop", f"{_failures(counts)}; more than {stop.max_failure_rate:.1%} stops a release")
    if not newest:
        return Judgement("stay", "a newer release is on offer")
    if release.rollback_of is not None:
        return Judgement("stay", f"took back release {release.rollback_of}")
    following = next((step for step in policy.steps if step.share > release.share), None)
    if following is None and policy.promote_to is None:
        return Judgement("stay", "all devices, and no channel comes after this one")
    rule = _current(release, policy).go_on
    lacking = unmet(rule, release, counts, now)
    if lacking:
        deaf = not policy.fleet_keys and counts.healthy < rule.min_healthy_devices
        unheard = "; no device's report counts, since the policy has no fleet_keys" if deaf else ""
        return Judgement("hold", f"needs {', '.join(lacking)}{unheard}")
    if following is not None:
        return Judgement("grow", f"to {following.share:.0%} of devices; {_healthy(counts)}", following.share)
    return Judgement("promote", f"to {policy.promote_to}; {_healthy(counts)}")


def unmet(rule: HealthRule, release: Release, counts: Counts, now: datetime) -> tuple[str, ...]:
    """What a release lacks to go on: none if the rule holds."""
    age_hours = (now - release.share_since).total_seconds() / 3600
    lacking = []
    if age_hours < rule.min_age_hours:
        lacking.append(f"{rule.min_age_hours - age_hours:.1f} hours more")
    if counts.healthy < rule.min_healthy_devices:
        more = rule.min_healthy_devices - counts.healthy
        lacking.append(f"{more} more healthy device{'s' if more > 1 else ''}")
    if counts.failure_rate > rule.max_failure_rate:
        lacking.append(f"fewer failures: {_failures(counts)}, {rule.max_failure_rate:.1%} is allowed")
    return tuple(lacking)


def last_rule(policy: ChannelPolicy) -> HealthRule:
    """What must hold before a release leaves the channel for the next one."""
    return policy.steps[-1].go_on


def _current(release: Release, policy: ChannelPolicy) -> RolloutStep:
    """The step that a release stands on; a share between two steps, of an earlier policy, is the lower one's."""
    reached = [step for step in policy.steps if step.share <= release.share]
    return reached[-1] if reached else policy.steps[0]


def _failures(counts: Counts) -> str:
    return f"{counts.failed} of {counts.reports} devices failed, {counts.failure_rate:.1%}"


def _healthy(counts: Counts) -> str:
    return f"{counts.healthy} healthy devices, {counts.failed} failed"

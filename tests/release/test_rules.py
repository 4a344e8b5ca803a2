"""What a policy says of a release, given its reports and the time."""

from hypothesis import given
from hypothesis import strategies as st
from ruled_channels import POLICY, judged, release

from tfx_edge.schemas import HealthRule, RolloutStep


def test_a_release_grows_when_its_step_is_served_and_not_before():
    grown = judged()
    assert (grown.action, grown.share) == ("grow", 1)
    assert judged(hours=20).text == "needs 4.0 hours more"
    assert judged(healthy=1).text == "needs 1 more healthy device"
    assert judged(healthy=8, failed=2).text == "needs fewer failures: 2 of 10 devices failed, 20.0%, 10.0% is allowed"
    assert {judged(hours=20).action, judged(healthy=1).action, judged(healthy=8, failed=2).action} == {"hold"}


def test_what_a_release_waits_for_stands_in_one_line():
    assert judged(hours=21.5, healthy=0).text == "needs 2.5 hours more, 2 more healthy devices"


def test_a_release_that_waits_for_reports_of_which_none_can_count_says_so():
    deaf = POLICY.model_copy(update={"fleet_keys": ()})
    assert (
        judged(policy=deaf, healthy=0).text == "needs 2 more healthy devices; no device's report counts, since the policy has no fleet_keys"
    )
    assert judged(policy=deaf, hours=20).text == "needs 4.0 hours more"


def test_a_step_is_served_at_its_bounds():
    assert judged(hours=24, healthy=2).action == "grow"
    assert judged(healthy=9, failed=1).action == "grow", "10 % is allowed"


def test_it_is_promoted_after_the_last_step_and_stays_where_no_channel_follows():
    assert judged(release(share=1.0)).action == "promote"
    assert judged(release(share=1.0), POLICY.model_copy(update={"promote_to": None})).action == "stay"
    assert judged(release(share=1.0), hours=23).action == "hold"


def test_it_is_promoted_after_a_last_step_that_leaves_devices_out():
    steps = (RolloutStep(share=0.25, go_on=HealthRule(min_age_hours=0, min_healthy_devices=0)),)
    assert judged(policy=POLICY.model_copy(update={"steps": steps})).action == "promote"


def test_neither_an_older_release_nor_one_that_took_another_back_goes_on():
    assert judged(newest=False).action == "stay"
    assert judged(release(share=1.0, rollback_of=2)).action == "stay"


def test_one_that_took_another_back_is_stopped_as_any_other():
    assert judged(release(share=1.0, rollback_of=2), healthy=1, failed=2).action == "stop"


@given(st.integers(0, 50), st.integers(0, 50), st.booleans(), st.floats(0, 100))
def test_it_is_stopped_exactly_where_enough_devices_reported_and_too_many_failed(healthy, failed, newest, hours):
    stopped = judged(hours=hours, healthy=healthy, failed=failed, newest=newest).action == "stop"
    assert stopped == (healthy + failed >= 3 and failed > 0.4 * (healthy + failed))


@given(st.floats(0.01, 1), st.floats(0, 200), st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_a_release_never_shrinks_and_never_skips_a_step(share, hours, healthy, failed, newest):
    shares = (0.1, 0.3, 0.6, 1)
    policy = POLICY.model_copy(update={"steps": tuple(RolloutStep(share=one) for one in shares)})
    judgement = judged(release(share=share), policy, hours, healthy, failed, newest=newest)
    if judgement.action == "grow":
        assert judgement.share == min(one for one in shares if one > share)
    else:
        assert judgement.share is None


def test_a_share_between_two_steps_of_a_newer_policy_goes_on_by_the_lower_ones_rule():
    steps = (
        RolloutStep(share=0.1),
        RolloutStep(share=0.2, go_on=HealthRule(min_age_hours=0, min_healthy_devices=0)),
        RolloutStep(share=0.5),
    )
    grown = judged(policy=POLICY.model_copy(update={"steps": steps}), hours=0, healthy=0)
    assert (grown.action, grown.share) == ("grow", 0.5)

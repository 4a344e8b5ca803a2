"""What is tried again, how often, and until when: in a package, and in a run of it."""

import pytest
from plain_packages import runner, states, step

from tfx_edge.kubeflow.compile.containers import apply_task
from tfx_edge.schemas import ComponentConfig, ConfigError, Retry


def policy(**retry):
    """What compiling makes of an environment's `retry`."""
    task = {}
    apply_task(task, ComponentConfig(retry=Retry(**retry)))
    return task


@pytest.fixture
def run(tmp_path):
    return runner(tmp_path)


def test_a_package_bounds_attempts_by_30_days_unless_told_otherwise():
    assert policy(count=2, backoff_s=5)["retryPolicy"] == {
        "maxRetryCount": 2,
        "backoffDuration": "5s",
        "backoffFactor": 2,
        "backoffMaxDuration": "2592000s",
    }
    assert policy(count=2, within_s=7200)["retryPolicy"]["backoffMaxDuration"] == "7200s"
    assert policy(count=0) == {}


def test_a_factor_with_a_fraction_is_refused_as_argo_cant_read_it():
    with pytest.raises(ConfigError, match="factor: got 1.5"):
        Retry(count=1, factor=1.5)


def test_a_failed_task_is_tried_again_with_nothing_left_of_the_attempt_before(run, tmp_path):
    script = """
    [ ! -e {{$.outputs.artifacts['data'].path}} ] || exit 9
    echo half > {{$.outputs.artifacts['data'].path}}
    echo x >> $COUNT
    [ $(wc -l < $COUNT) -ge 3 ]
    """
    record = run({"flaky": step(script, makes=("data",), env={"COUNT": str(tmp_path / "count")}, **policy(count=3, backoff_s=0))})
    assert record.state == "SUCCEEDED" and record.tasks["flaky"].attempts == 3


def test_a_task_is_tried_no_more_often_than_its_policy_says(run):
    record = run({"bad": step("exit 1", **policy(count=2, backoff_s=0))})
    assert record.state == "FAILED" and record.tasks["bad"].attempts == 3


def test_a_task_whose_first_attempt_took_longer_than_the_bound_is_not_tried_again(run):
    record = run({"long": step("sleep 1.2; exit 1", **policy(count=2, backoff_s=0, within_s=1))})
    assert record.tasks["long"].attempts == 1 and record.tasks["long"].reason == "exit status 1"


def test_a_policy_of_another_compiler_without_a_bound_allows_no_further_attempt_as_on_kfp(run):
    record = run({"bad": step("exit 1", retryPolicy={"maxRetryCount": 2})})
    assert record.tasks["bad"].attempts == 1


def test_a_further_attempt_is_ended_at_the_bound_and_what_depends_on_it_is_skipped(run, tmp_path):
    script = "[ -e $SEEN ] || { touch $SEEN; exit 1; }; sleep 600"
    long = step(script, env={"SEEN": str(tmp_path / "seen")}, **policy(count=5, backoff_s=0, within_s=2))
    record = run({"long": long, "behind": step("true", dependentTasks=["long"])})
    assert states(record) == {"long": "FAILED", "behind": "SKIPPED"} and record.tasks["long"].attempts == 2
    assert record.tasks["long"].reason == "ended, as its retry policy allows 2s from the first attempt's start"

"""When a failed command is tried again.

Sources: argocompiler/container.go of kubeflow/pipelines, which fills Argo's retryStrategy, and processNodeRetries in
workflow/controller/operator.go of argoproj/argo-workflows. `backoffMaxDuration` bounds the time from the first attempt's start, not
one wait: no other attempt starts behind it, and one that runs is ended. Where it's absent, KFP hands Argo 0: no other attempt at all.
"""

from tfx_edge.kubeflow.local_run.spec import RetryPolicy


def limit(policy: RetryPolicy) -> float:
    """Seconds from the first attempt's start in which all others have to start, and to end."""
    return _seconds(policy.backoff_max_duration)


def wait_before(attempt: int, policy: RetryPolicy, elapsed: float) -> float | None:
    """Seconds to wait before an attempt; None: it isn't made.

    Args:
        attempt: Its number; the first is 1.
        policy: The task's.
        elapsed: Seconds since the first attempt started.

    >>> policy = RetryPolicy(maxRetryCount=3, backoffDuration="10s", backoffFactor=2, backoffMaxDuration="60s")
    >>> [wait_before(attempt, policy, 1) for attempt in (2, 3, 4, 5)]
    [10.0, 20.0, 40.0, None]
    >>> wait_before(3, policy, 41) is None
    True
    """
    if attempt > policy.max_retry_count + 1:
        return None
    wait = _seconds(policy.backoff_duration)
    if policy.backoff_factor > 0:
        wait *= policy.backoff_factor ** (attempt - 2)
    return None if elapsed + wait > limit(policy) else wait


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))

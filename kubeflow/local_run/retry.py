"""When a failed command is tried again.

Source: Argo's retryStrategy, as argocompiler/container.go of kubeflow/pipelines fills it: `backoffMaxDuration` bounds the time
from the first attempt's start in which another one may start, not one wait.
"""

from tfx_edge.kubeflow.local_run.spec import RetryPolicy


def wait_before(attempt: int, policy: RetryPolicy, elapsed: float) -> float | None:
    """Seconds to wait before an attempt; None: it isn't made.

    Args:
        attempt: Its number; the first is 1.
        policy: The task's.
        elapsed: Seconds since the first attempt started.

    >>> policy = RetryPolicy(maxRetryCount=3, backoffDuration="10s", backoffFactor=2, backoffMaxDuration="60s")
    >>> [wait_before(attempt, policy, 1) for attempt in (2, 3, 4, 5)]
    [10.0, 20.0, 40.0, None]
    """
    if attempt > policy.max_retry_count + 1:
        return None
    wait = _seconds(policy.backoff_duration)
    if policy.backoff_factor > 0:
        wait *= policy.backoff_factor ** (attempt - 2)
    limit = _seconds(policy.backoff_max_duration)
    return None if limit and elapsed + wait > limit else wait


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))

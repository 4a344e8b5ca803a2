"""Each hook in time, or not at all."""

import logging
import threading

from tfx_edge.observability.notifier.configured import configured
from tfx_edge.observability.notifier.python_hook import call
from tfx_edge.observability.notifier.webhook import longest, post
from tfx_edge.observability.redaction import redacted
from tfx_edge.schemas.errors import EdgeError
from tfx_edge.schemas.notify import Notification, NotifierConfig, PythonHook, Webhook

_log = logging.getLogger(__name__)


def notify(notification: Notification) -> None:
    """Tells everybody whom TFX_EDGE_NOTIFY's file names, and logs who couldn't be told. Raises nothing."""
    try:
        config = configured()
    except EdgeError as error:
        _log.error("nobody was told that %s: %s", notification.summary, redacted(str(error)))
        return
    if config is not None:
        for problem in deliver(config, notification):
            _log.warning("not told that %s: %s", notification.summary, problem)


def deliver(config: NotifierConfig, notification: Notification) -> list[str]:
    """Tells all that want the event, at the same time.

    Returns:
        Who couldn't be told and why, a line each, without secrets.
    """
    wanting = [hook for hook in config.hooks if not hook.events or notification.event in hook.events]
    problems: dict[int, str] = {}

    def tell(place: int, hook: Webhook | PythonHook) -> None:
        try:
            if isinstance(hook, Webhook):
                post(hook, notification)
            else:
                call(hook, notification)
        except EdgeError as error:
            problems[place] = redacted(str(error))
        except BaseException as error:  # noqa: BLE001  # a hook is anybody's code, and the model's fate is decided already
            problems[place] = redacted(" ".join(f"hook of {_name(hook)}: {type(error).__name__}: {error}".split()))

    # Threads of their own, given up after a time: a server that sends a byte now and then would hold the component for ever.
    threads = [threading.Thread(target=tell, args=(i, hook), name="tfx-edge-notify", daemon=True) for i, hook in enumerate(wanting)]
    for thread in threads:
        thread.start()
    for place, (thread, hook) in enumerate(zip(threads, wanting, strict=True)):
        seconds = longest(hook) + 1 if isinstance(hook, Webhook) else hook.timeout_s
        thread.join(seconds)
        if thread.is_alive():
            problems[place] = f"hook of {_name(hook)}: still busy after {seconds:g} s"
    return [problems[place] for place in sorted(problems)]


def _name(hook: Webhook | PythonHook) -> str:
    return hook.url if isinstance(hook, Webhook) else hook.function

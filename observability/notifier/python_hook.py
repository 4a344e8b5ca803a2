"""A function of one's own."""

import importlib

from tfx_edge.schemas.errors import EdgeError
from tfx_edge.schemas.notify import Notification, PythonHook


def call(hook: PythonHook, notification: Notification) -> None:
    """Calls the function.

    Raises:
        EdgeError: there is no such function.
        Exception: what it raises.
    """
    module, _, name = hook.function.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise EdgeError(f"hook {hook.function}: can't be imported ({error}); expected package.module.function") from error
    function(notification)

"""Which extra a command needs."""

import importlib.util

from tfx_edge.schemas import EdgeError


def require_tfx(command: str) -> None:
    """Stops a command that needs TFX where it isn't installed.

    Raises:
        EdgeError: it isn't.
    """
    if importlib.util.find_spec("tfx") is None:
        raise EdgeError(f"tfx-edge {command}: TFX is not installed; pip install 'tfx-edge[tfx]'")

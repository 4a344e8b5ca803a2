"""The extra that profiling needs."""

import importlib.util
from collections.abc import Collection

from tfx_edge.schemas.errors import EdgeError

_PACKAGES = {"flame": "pyinstrument", "lines": "line_profiler"}


def require_tools(names: Collection[str]) -> None:
    """Refuses a profile whose tools aren't installed, before the work.

    Raises:
        EdgeError: they aren't.
    """
    missing = [package for tool, package in _PACKAGES.items() if tool in names and importlib.util.find_spec(package) is None]
    if missing:
        raise EdgeError(f"profile: {' and '.join(missing)} not installed; pip install 'tfx-edge[profile]'")

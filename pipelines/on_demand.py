"""Attributes of a package that are imported when they are asked for: a run_fn needs none of the components."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def on_demand(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`.

    Args:
        package: its `__name__`.
        modules: attribute to the module of the package that has it.
    """

    def get(name: str) -> Any:
        if name in modules:
            return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get

"""The first place at which two documents differ."""

from typing import Any


def first_difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """Its path and both values in one line, or None where there is none.

    >>> from tfx_edge.kubeflow.manifests.difference import first_difference
    >>> first_difference({"a": [1, 2]}, {"a": [1, 3]})
    'a[1] is 2, not 3'
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            where = f"{path}.{key}" if path else str(key)
            if key not in ours or key not in theirs:
                return f"{where} is {'missing' if key not in ours else 'not expected'}"
            if found := first_difference(ours[key], theirs[key], where):
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        for index, pair in enumerate(zip(ours, theirs, strict=False)):
            if found := first_difference(*pair, f"{path}[{index}]"):
                return found
        return f"{path} has {len(ours)} items, not {len(theirs)}" if len(ours) != len(theirs) else None
    if type(ours) is type(theirs) and ours == theirs:
        return None
    if isinstance(ours, str) and isinstance(theirs, str):
        same = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if len(set(pair)) > 1), min(len(ours), len(theirs)))
        before = max(same - 20, 0)
        ours, theirs = ours[before:], theirs[before:]
    return f"{path} is {_short(ours)}, not {_short(theirs)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

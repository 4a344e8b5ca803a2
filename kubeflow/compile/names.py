"""Names that Argo, which runs KFP's tasks, takes: lower-case letters, digits and dashes."""

import re
from collections.abc import Iterable

from tfx_edge.schemas import EdgeError


def slug(name: str) -> str:
    """A name as Argo takes it.

    >>> from tfx_edge.kubeflow.compile.names import slug
    >>> slug("TFLiteExporter.small_v2")
    'tfliteexporter-small-v2'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def slugs(names: Iterable[str]) -> dict[str, str]:
    """The slug of each component's id.

    Raises:
        EdgeError: two ids have the same, or one has none.
    """
    found: dict[str, str] = {}
    for name in sorted(names):  # TFX's order isn't the same in each process
        short = slug(name)
        if not short:
            raise EdgeError(f"component {name!r}: its id has no letter or digit for a name on Kubernetes; give it one by with_id")
        if short in found.values():
            other = next(n for n, s in found.items() if s == short)
            raise EdgeError(f"components {other!r} and {name!r} are both {short!r} on Kubernetes; give one another id by with_id")
        found[name] = short
    return found

"""Packages: what `tfx-edge compile` writes and Kubeflow runs."""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tfx_edge.schemas import EdgeError, KubeflowConfig


class _Dumper(yaml.SafeDumper):
    """Writes what is there twice twice, and texts of several lines as they read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# KFP reads packages with Go, whose YAML takes these for numbers and booleans where PyYAML sees texts: with this they get quotes.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$"), list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?0[ob]?[0-7_]+$"), list("-+0"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))


class _Loader(yaml.SafeLoader):
    """Refuses a key that a mapping has twice, of which PyYAML takes the last."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:  # here, and not where values are made: by then merge keys are among the mapping's own
            if key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"key {key.value!r} is there twice; keep one", key.start_mark)
            seen.add(key.value)
        return node


def dump(documents: Sequence[Mapping[str, Any]]) -> str:
    """YAML with sorted keys: the same documents give the same text."""
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=True, width=140, explicit_start=len(documents) > 1)
    return text


def write(path: Path, text: str) -> None:
    """Writes a file whole or not at all.

    Raises:
        EdgeError: it can't be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except OSError as error:
        raise EdgeError(f"{path}: can't be written ({error.strerror}); give another place") from error


def read_config(path: Path) -> KubeflowConfig:
    """Reads an environment's file.

    Raises:
        EdgeError: it can't be read, isn't YAML, or doesn't fit the schema; the text has the file's name.
    """
    try:
        content = yaml.load(path.read_text(), _Loader)  # noqa: S506  # a SafeLoader
    except (OSError, UnicodeDecodeError) as error:
        raise EdgeError(f"{path}: can't be read ({error}); name the file of an environment") from error
    except yaml.YAMLError as error:
        # Without the line's text, which may hold what nobody should see.
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or type(error).__name__
        raise EdgeError(f"{path}: isn't YAML: {f'line {mark.line + 1}: ' if mark else ''}{' '.join(problem.split())}") from error
    if not isinstance(content or {}, dict):
        raise EdgeError(f"{path}: holds a {type(content).__name__}; expected the fields of a KubeflowConfig")
    try:
        return KubeflowConfig(**(content or {}))
    except (EdgeError, TypeError) as error:
        raise EdgeError(f"{path}: {error}") from error

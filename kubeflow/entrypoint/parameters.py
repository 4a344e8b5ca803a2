"""Parameters as an executor takes them."""

import json
import typing
from collections.abc import Mapping
from typing import Any


def as_declared(executor: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Execution properties as the component declared them.

    TFX compiles lists and dictionaries to JSON and booleans to integers, and hands them over as such. An executor class of its own knows
    that; a function component's annotations say what it takes, and LocalDagRunner gives it that.

    Args:
        executor: that is going to run.
        values: its execution properties by name, as TFX parses them.
    """
    function = getattr(executor, "_FUNCTION", None)
    hints = typing.get_type_hints(function) if function is not None else {}
    return {name: _as_declared(plain(value), getattr(hints.get(name), "type", None)) for name, value in values.items()}


def _as_declared(value: Any, kind: Any) -> Any:
    if kind is bool:
        return bool(value)
    return json.loads(value) if isinstance(value, str) and _is_json(kind) else value


def _is_json(kind: Any) -> bool:
    """Whether an annotation is a list or a dictionary, or one that may be left out."""
    return typing.get_origin(kind) in (list, dict) or any(typing.get_origin(part) in (list, dict) for part in typing.get_args(kind))


def plain(value: Any) -> Any:
    """A parameter's value as Python has it: KFP's lists and structures come as messages, and their integers as doubles."""
    from google.protobuf import json_format
    from google.protobuf.struct_pb2 import ListValue, Struct

    return _whole_numbers(json_format.MessageToDict(value)) if isinstance(value, (ListValue, Struct)) else value


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole_numbers(part) for part in value]
    return {key: _whole_numbers(part) for key, part in value.items()} if isinstance(value, dict) else value

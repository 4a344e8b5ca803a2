"""Parameter values as KFP's backend holds them: JSON, all numbers doubles, checked against the declared types.

Source: backend/src/v2/metadata/converter.go (text), backend/src/v2/driver/resolve.go (types) of kubeflow/pipelines.
"""

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tfx_edge.kubeflow.local_run.spec import ParameterSpec
from tfx_edge.schemas import EdgeError

_JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "STRING": str,
    "NUMBER_INTEGER": (int, float),
    "NUMBER_DOUBLE": (int, float),
    "BOOLEAN": bool,
    "LIST": list,
    "STRUCT": dict,
    "TASK_FINAL_STATUS": dict,
}
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}  # strconv.ParseBool's
_EXPECTED = {
    "NUMBER_INTEGER": "an integer",
    "NUMBER_DOUBLE": "a number",
    "BOOLEAN": "true or false",
    "LIST": "a JSON list",
    "STRUCT": "a JSON object",
}


class WrongType(Exception):
    """A value doesn't have its declared type."""


def to_json(value: Any) -> str:
    """JSON as Go writes it: a double without a fraction has no decimal point.

    >>> to_json({"n": 5.0, "x": 0.5})
    '{"n":5,"x":0.5}'
    """
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def to_text(value: Any) -> str:
    """What stands in a command line, or in a parameter that is a string; a number without an exponent.

    >>> to_text("a"), to_text(5.0), to_text(1e-05), to_text(True), to_text([1e-05])
    ('a', '5', '0.00001', 'true', '[1e-05]')
    """
    if isinstance(value, float):
        return format(Decimal(to_json(value)), "f")
    return value if isinstance(value, str) else to_json(value)


def from_text(text: str, parameter_type: str) -> Any:
    """A value from what a step wrote in its output file, or a person on a command line.

    Raises:
        WrongType: the text isn't of the type.

    >>> from_text("3", "NUMBER_INTEGER"), from_text("true", "BOOLEAN"), from_text("3", "STRING")
    (3, True, '3')
    """
    if parameter_type == "STRING":
        return text
    try:
        if parameter_type == "NUMBER_INTEGER":
            return int(text)
        if parameter_type == "NUMBER_DOUBLE":
            return _finite(float(text))
        if parameter_type == "BOOLEAN":
            return _BOOLEANS[text.strip().lower()]
        return checked(json.loads(text), parameter_type)
    except (ValueError, KeyError):
        raise WrongType(f"got {text!r:.200}; expected {_EXPECTED.get(parameter_type, parameter_type)}") from None


def checked(value: Any, parameter_type: str) -> Any:
    """The value as a task of that input gets it: whatever goes into a string becomes text, nothing else is converted.

    Raises:
        WrongType: the value has another type.
    """
    if parameter_type == "STRING":
        return to_text(value)
    expected = _JSON_TYPES.get(parameter_type)
    if expected is None:
        raise WrongType(f"type {parameter_type} isn't known here")
    is_bool = isinstance(value, bool)
    if not isinstance(value, expected) or is_bool is not (parameter_type == "BOOLEAN"):
        raise WrongType(f"got {to_json(value):.200}; expected {_EXPECTED.get(parameter_type, parameter_type)}")
    return value


def read_parameters(specs: Mapping[str, ParameterSpec], given: Mapping[str, str]) -> dict[str, Any]:
    """A run's parameters, from what a person gave and from the package's defaults; an optional one may stay away.

    Raises:
        EdgeError: a name is unknown, a value is missing, or has the wrong type.
    """
    for name in given:
        if name not in specs:
            raise EdgeError(f"--param {name}: the package has no such input; it has {', '.join(sorted(specs)) or 'none'}")
    missing = [name for name, spec in specs.items() if name not in given and spec.default_value is None and not spec.is_optional]
    if missing:
        raise EdgeError(f"inputs without a default have no value; give {' '.join(f'--param {name}=...' for name in sorted(missing))}")
    values = {}
    for name, spec in specs.items():
        if name in given:
            try:
                values[name] = from_text(given[name], spec.parameter_type)
            except WrongType as error:
                raise EdgeError(f"--param {name}: {error}") from None
        elif spec.default_value is not None:
            values[name] = spec.default_value
    return values


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("JSON has neither infinity nor NaN")
    return value

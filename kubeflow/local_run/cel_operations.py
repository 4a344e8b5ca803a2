"""What CEL's operators and conversions do, as functions of a condition's variables.

Source of the semantics: github.com/google/cel-spec, doc/langdef.md, and KFP's use of it (backend/src/v2/expression/expression.go):
all numbers are doubles, a missing key is an error, and `&&` and `||` absorb the other side's error where their own side decides.
KFP's first backends of version 2 take `x == 1` for an error, as x is a double and 1 is not; here it holds as on newer ones.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

Evaluate = Callable[[Mapping[str, Any]], Any]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NO_VALUE = object()


class ConditionError(Exception):
    """An expression that can't be evaluated with what a run has: KFP's driver fails the task then."""


def constant(value: Any) -> Evaluate:
    """A literal."""
    return lambda variables: value


def logical(left: Evaluate, right: Evaluate, *, decides: bool) -> Evaluate:
    """`||` where True decides, `&&` where False does; the other side's error matters only where neither side decides."""

    def evaluate(variables: Mapping[str, Any]) -> bool:
        errors = []
        for side in (left, right):
            try:
                if _bool(side(variables)) is decides:
                    return decides
            except ConditionError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return not decides

    return evaluate


def comparison(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """`==` and the others; values of two kinds are unequal, and have no order."""

    def evaluate(variables: Mapping[str, Any]) -> bool:
        a, b = left(variables), right(variables)
        same = _kind(a) is _kind(b)
        if sign in {"==", "!="}:
            return (same and a == b) is (sign == "==")
        if not same or _kind(a) not in {float, str}:
            raise ConditionError(f"{a!r} {sign} {b!r}: no such comparison")
        return bool(_COMPARE[sign](a, b))

    return evaluate


def addition(left: Evaluate, right: Evaluate) -> Evaluate:
    """`+` of numbers, or of texts."""

    def evaluate(variables: Mapping[str, Any]) -> Any:
        a, b = left(variables), right(variables)
        if _kind(a) is not _kind(b) or _kind(a) not in {float, str}:
            raise ConditionError(f"{a!r} + {b!r}: no such sum")
        return a + b

    return evaluate


def negation(value: Evaluate) -> Evaluate:
    """`!value`."""
    return lambda variables: not _bool(value(variables))


def minus(value: Evaluate) -> Evaluate:
    """`-value`."""
    return lambda variables: -_number(value(variables))


def member(value: Evaluate, name: str) -> Evaluate:
    """`value.name`."""
    return lambda variables: get(value(variables), name)


def index(value: Evaluate, key: Evaluate) -> Evaluate:
    """`value[key]`."""
    return lambda variables: get(value(variables), key(variables))


def get(value: Any, key: Any) -> Any:
    """An entry of a map, or an element of a list.

    Raises:
        ConditionError: there is none.
    """
    if isinstance(value, Mapping):
        found = value.get(key, _NO_VALUE) if isinstance(key, str) else _NO_VALUE
        if found is _NO_VALUE:
            raise ConditionError(f"no such key: {key!r}")
        return found
    if isinstance(value, list) and _kind(key) is float and float(key).is_integer() and 0 <= key < len(value):
        return value[int(key)]
    raise ConditionError(f"no such element: {key!r}")


def _kind(value: Any) -> type:
    """Bool is no number in CEL, and int and double compare as numbers."""
    return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConditionError(f"{value!r} isn't a bool")
    return value


def _number(value: Any) -> float:
    if _kind(value) is not float:
        raise ConditionError(f"{value!r} isn't a number")
    return float(value)


def _to_bool(value: Any) -> bool:
    if value in ("true", "false"):
        return bool(value == "true")
    return _bool(value)


def _to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if _kind(value) is float:
        return str(int(value)) if float(value).is_integer() else str(value)
    return str(value)


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "int": lambda value: float(int(value)),
    "double": float,
    "string": _to_string,
    "bool": _to_bool,
}


def convert(name: str, argument: Evaluate) -> Evaluate:
    """`int(x)` and the others of CONVERSIONS."""

    def evaluate(variables: Mapping[str, Any]) -> Any:
        value = argument(variables)
        if isinstance(value, bool) and name in {"int", "double"}:
            raise ConditionError(f"{name}({value!r}): no such conversion")
        try:
            return CONVERSIONS[name](value)
        except (TypeError, ValueError, OverflowError):
            raise ConditionError(f"{name}({value!r}): no such conversion") from None

    return evaluate

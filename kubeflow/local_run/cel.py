"""Conditions: the part of CEL that TFX's runner and KFP's compiler write, parsed whole before a run starts.

Literals, inputs, members and indexes, comparisons, `&&`, `||`, `!`, `+` and the conversions int, double, string and bool; what they
do is in cel_operations.py. No library: cel-python takes `true == 1` for true and `'a' == 3` for an error, and brings RE2 and three
more packages; common-expression-language needs Python 3.11; neither says before a run which inputs a condition reads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfx_edge.kubeflow.local_run import cel_operations as ops
from tfx_edge.kubeflow.local_run.cel_operations import ConditionError, Evaluate
from tfx_edge.schemas import EdgeError

__all__ = ["Condition", "ConditionError", "parse"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-!<>()\[\].,+]))""",
    re.VERBOSE,
)
_LITERALS = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Condition:
    """A parsed condition, and the inputs it reads."""

    text: str
    evaluate: Evaluate
    parameters: frozenset[str]
    artifacts: frozenset[str]

    def holds(self, inputs: Mapping[str, Any]) -> bool:
        """Whether the task is to run.

        Args:
            inputs: `{"parameter_values": {...}, "artifacts": {key: {"artifacts": [...]}}}`.

        Raises:
            ConditionError: a key is missing, types don't fit, or the result isn't a bool.
        """
        value = self.evaluate({"inputs": inputs})
        if not isinstance(value, bool):
            raise ConditionError(f"its value is {value!r}, not a bool")
        return value


def parse(text: str) -> Condition:
    """Parses a condition.

    Raises:
        EdgeError: it isn't in the part of CEL that is understood here.

    >>> parse("int(inputs.parameter_values['n']) > 3 || false").holds({"parameter_values": {"n": 4.0}})
    True
    """
    parser = _Parser(text)
    evaluate = parser.disjunction()
    if parser.kind != "end":
        raise parser.refuse()
    return Condition(text, evaluate, frozenset(parser.parameters), frozenset(parser.artifacts))


class _Parser:
    """Recursive descent, one method a level of precedence; each gives a function of the variables."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.parameters: set[str] = set()
        self.artifacts: set[str] = set()
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match.lastgroup is None:
            if self.text[self.at :].strip():
                self.token = self.text[self.at :].strip()[0]
                raise self.refuse()
            self.kind, self.token = "end", ""
            return
        self.kind, self.token, self.at = match.lastgroup, match[match.lastgroup], match.end()

    def refuse(self) -> EdgeError:
        found = repr(self.token) if self.token else "its end"
        return EdgeError(
            f"condition {self.text!r}: can't read {found}; understood are inputs.parameter_values['x'], "
            "inputs.artifacts['x'].artifacts[0].metadata['y'] or .uri, literals, comparisons, && || ! +, int(), double(), string(), bool()"
        )

    def take(self, *signs: str) -> str | None:
        if self.kind != "sign" or self.token not in signs:
            return None
        token = self.token
        self.advance()
        return token

    def expect(self, sign: str) -> None:
        if self.take(sign) is None:
            raise self.refuse()

    def disjunction(self) -> Evaluate:
        left = self.conjunction()
        while self.take("||"):
            left = ops.logical(left, self.conjunction(), decides=True)
        return left

    def conjunction(self) -> Evaluate:
        left = self.comparison()
        while self.take("&&"):
            left = ops.logical(left, self.comparison(), decides=False)
        return left

    def comparison(self) -> Evaluate:
        left = self.addition()
        while sign := self.take("==", "!=", "<", "<=", ">", ">="):
            left = ops.comparison(sign, left, self.addition())
        return left

    def addition(self) -> Evaluate:
        left = self.unary()
        while self.take("+"):
            left = ops.addition(left, self.unary())
        return left

    def unary(self) -> Evaluate:
        if self.take("!"):
            return ops.negation(self.unary())
        if self.take("-"):
            return ops.minus(self.unary())
        return self.member(self.primary())

    def member(self, value: Evaluate) -> Evaluate:
        while sign := self.take(".", "["):
            if sign == ".":
                if self.kind != "name":
                    raise self.refuse()
                value = ops.member(value, self.token)
                self.advance()
            else:
                value = ops.index(value, self.disjunction())
                self.expect("]")
        return value

    def primary(self) -> Evaluate:
        kind, token = self.kind, self.token
        if self.take("("):
            inner = self.disjunction()
            self.expect(")")
            return inner
        if kind in {"number", "string"}:
            self.advance()
            return ops.constant(float(token) if kind == "number" else _unquote(token))
        if kind != "name":
            raise self.refuse()
        if token in _LITERALS:
            self.advance()
            return ops.constant(_LITERALS[token])
        if token in ops.CONVERSIONS:
            self.advance()
            self.expect("(")
            argument = self.disjunction()
            self.expect(")")
            return ops.convert(token, argument)
        if token == "inputs":  # noqa: S105 - a word of CEL
            self.advance()
            return self.input()
        raise self.refuse()

    def input(self) -> Evaluate:
        """`inputs` is read with its key alone, so that a key which the task hasn't got is seen before the run."""
        self.expect(".")
        field = self.token
        keys = {"parameter_values": self.parameters, "artifacts": self.artifacts}.get(field)
        if keys is None:
            raise self.refuse()
        self.advance()
        self.expect("[")
        if self.kind != "string":
            raise self.refuse()
        key = _unquote(self.token)
        self.advance()
        self.expect("]")
        keys.add(key)
        return lambda variables: ops.get(variables["inputs"].get(field, {}), key)


def _unquote(token: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])

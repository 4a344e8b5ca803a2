"""The table of a flatbuffer's kinds of operators, to which each operator refers."""

from typing import Any

from ai_edge_litert import schema_py_generated as schema


def operator_code(parsed: Any, operator: int, version: int) -> int:
    """The place of a builtin operator and version in a parsed flatbuffer's table, which gets it where it isn't there."""
    for index, code in enumerate(parsed.operatorCodes):
        if max(code.builtinCode, code.deprecatedBuiltinCode) == operator and code.version == version:
            return index
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = operator
    code.version = version
    parsed.operatorCodes.append(code)
    return len(parsed.operatorCodes) - 1

"""Hypothesis strategies out of JSON Schemas, as far as pydantic's use them."""

import re
from typing import Any

from hypothesis import strategies as st

_CHARACTERS = st.characters(codec="utf-8")
_TEXT = st.text(_CHARACTERS, max_size=8)
_ANY = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | _TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=3)


def documents(schema: dict[str, Any], root: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """JSON values that fit the schema; properties with a default are left out at times."""
    root = root or schema
    if "$ref" in schema:
        definition = schema["$ref"].removeprefix("#/$defs/")
        return st.deferred(lambda: documents(root["$defs"][definition], root))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return st.one_of([documents(option, root) for option in schema[key]])
    return _BY_TYPE[schema["type"]](schema, root) if "type" in schema else _ANY


def _integers(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    high = schema.get("maximum", schema.get("exclusiveMaximum", 2**31) - 1)
    return st.integers(schema.get("minimum", schema.get("exclusiveMinimum", -(2**31) - 1) + 1), high)


def _numbers(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum", schema.get("exclusiveMaximum"))
    return st.floats(
        low, high, allow_nan=False, allow_infinity=False, exclude_min="exclusiveMinimum" in schema, exclude_max="exclusiveMaximum" in schema
    )


def _arrays(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "prefixItems" in schema:
        return st.tuples(*(documents(item, root) for item in schema["prefixItems"])).map(list)
    least = schema.get("minItems", 0)
    return st.lists(documents(schema.get("items", {}), root), min_size=least, max_size=least + 2)


def _objects(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        values = schema.get("additionalProperties", {})
        least = schema.get("minProperties", 0)
        patterns = schema.get("patternProperties", {})
        named = [
            st.dictionaries(_strings({"pattern": pattern}, root), documents(value, root), max_size=2) for pattern, value in patterns.items()
        ]
        free = _TEXT.filter(lambda name: not any(re.search(pattern, name) for pattern in patterns))
        others = st.dictionaries(free, _ANY if values is True else documents(values, root), min_size=least, max_size=least + 2)
        return st.one_of(*named, others)
    properties = {name: documents(value, root) for name, value in schema["properties"].items()}
    required = {name: properties[name] for name in schema.get("required", ())}
    return st.fixed_dictionaries(required, optional={name: value for name, value in properties.items() if name not in required})


def _strings(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    least = schema.get("minLength", 0)
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], alphabet=_CHARACTERS).filter(lambda text: len(text) >= least and "\n" not in text)
    return st.text(_CHARACTERS, min_size=least, max_size=least + 8)


_BY_TYPE = {
    "null": lambda schema, root: st.none(),
    "boolean": lambda schema, root: st.booleans(),
    "string": _strings,
    "integer": _integers,
    "number": _numbers,
    "array": _arrays,
    "object": _objects,
}

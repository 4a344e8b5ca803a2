"""The published JSON Schemas: in step with the configs, and true to the JSON that configs write and read."""

import contextlib
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from json_schemas import documents

from tfx_edge.schemas import ConfigError
from tfx_edge.schemas.publish import FOLDER, json_schema, public_configs, publish, render

CONFIGS = public_configs()


def test_the_published_schemas_are_in_step_with_the_configs() -> None:
    published = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    wanted = render()
    out_of_step = sorted(name for name in published.keys() | wanted.keys() if published.get(name) != wanted.get(name))
    assert not out_of_step, f"{', '.join(out_of_step)} in schemas/json: run `make schemas`"


def test_publishing_removes_the_schema_of_a_config_that_is_gone(tmp_path) -> None:
    (tmp_path / "Gone.json").write_text("{}")
    publish(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == render()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_schema_is_a_valid_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(CONFIGS[name]))


@pytest.mark.parametrize("name", CONFIGS)
@given(data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])  # shrinking takes minutes
def test_what_a_schema_accepts_is_read_and_written_back_or_refused_in_one_line(name: str, data: st.DataObject) -> None:
    config, schema = CONFIGS[name], json_schema(CONFIGS[name])
    document = data.draw(documents(schema))
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    try:
        value = config.from_json(json.dumps(document))
    except ConfigError as error:  # fields that don't fit each other, which a JSON Schema can't tell
        assert len(str(error).splitlines()) == 1
        return
    jsonschema.validate(json.loads(value.to_json()), schema, cls=jsonschema.Draft202012Validator)
    assert config.from_json(value.to_json()) == value
    assert config.from_json(value.to_json()).to_json() == value.to_json()


def _bounds(schema: dict[str, Any]) -> list[tuple[str, str, float]]:
    """Each bounded number of a schema's own properties: its name, the keyword and a value just outside."""
    outside = {"minimum": -1, "maximum": +1, "exclusiveMinimum": 0, "exclusiveMaximum": 0}
    return [
        (name, keyword, option[keyword] + step)
        for name, property_ in schema["properties"].items()
        for option in property_.get("anyOf", [property_])
        for keyword, step in outside.items()
        if keyword in option
    ]


BOUNDS = [(name, *bound) for name, config in CONFIGS.items() for bound in _bounds(json_schema(config))]


def test_the_configs_have_bounds() -> None:
    assert len(BOUNDS) > 40


@pytest.mark.parametrize(("name", "field", "keyword", "value"), BOUNDS)
def test_a_value_outside_its_published_bound_is_refused_by_name(name: str, field: str, keyword: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"{name}\.{field}: got {value}; ") as caught:
        CONFIGS[name].from_json(json.dumps({field: value}))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_no_number_field_takes_nan_or_infinity(name: str, number: float) -> None:
    for field, property_ in json_schema(CONFIGS[name])["properties"].items():
        if any(option.get("type") == "number" for option in property_.get("anyOf", [property_])):
            with pytest.raises(ConfigError, match=rf"{name}\.{field}: got (nan|-?inf); "):
                CONFIGS[name](**{field: number})
            with contextlib.suppress(ValueError), pytest.raises(ConfigError, match=rf"{name}"):
                CONFIGS[name].from_json(json.dumps({field: number}))

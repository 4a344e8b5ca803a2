"""Publishes the JSON Schema of every config and document as `schemas/json/<Name>.json`: `make schemas`."""

import json
from pathlib import Path
from typing import Any

from tfx_edge import schemas
from tfx_edge.schemas.config import Config

FOLDER = Path(__file__).parent / "json"


def public_configs() -> dict[str, type[Config]]:
    """Every config and document that `tfx_edge.schemas` exports, by name."""
    exported = {name: getattr(schemas, name) for name in schemas.__all__}
    return {
        name: value for name, value in exported.items() if isinstance(value, type) and issubclass(value, Config) and value is not Config
    }


def json_schema(config: type[Config]) -> dict[str, Any]:
    """The JSON Schema, draft 2020-12, of the JSON that `Config.to_json` writes and `Config.from_json` reads."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **config.model_json_schema()}


def render() -> dict[str, str]:
    """What each file of the folder must hold, by file name."""
    return {f"{name}.json": json.dumps(json_schema(config), indent=2) + "\n" for name, config in public_configs().items()}


def publish(folder: Path = FOLDER) -> None:
    """Writes every schema and removes those of configs that are gone."""
    folder.mkdir(exist_ok=True)
    files = render()
    for stale in {path.name for path in folder.glob("*.json")} - files.keys():
        (folder / stale).unlink()
    for name, text in files.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    publish()

"""What KFP keeps in ML Metadata across runs: artifacts by number, and executions whose outputs can be taken again.

Source: backend/src/v2/metadata (client.go, converter.go) and cacheutils of kubeflow/pipelines. One SQLite file below the
root, so that two runs at the same time see whole records.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfx_edge.schemas import EdgeError

_STORE_SESSION = json.dumps({"Provider": "minio", "Params": {"fromEnv": "true"}}, separators=(",", ":"))
_TABLES = """
CREATE TABLE IF NOT EXISTS artifacts (id INTEGER PRIMARY KEY, pipeline TEXT, uri TEXT, type TEXT, metadata TEXT);
CREATE TABLE IF NOT EXISTS executions (id INTEGER PRIMARY KEY, pipeline TEXT, fingerprint TEXT, outputs TEXT);
CREATE INDEX IF NOT EXISTS by_fingerprint ON executions (pipeline, fingerprint);
CREATE INDEX IF NOT EXISTS by_uri ON artifacts (pipeline, uri);
"""


@dataclass(frozen=True)
class Artifact:
    """A recorded artifact.

    Args:
        number: Its id, the `name` that a task sees.
        type: The schema's title.
        metadata: As tasks get it: numbers are doubles, lists and structs are wrapped.
    """

    number: int
    uri: str
    type: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Outputs:
    """What a task, or a graph, put out."""

    parameters: dict[str, Any]
    artifacts: dict[str, list[Artifact]]


class MetadataStore:
    """The records below one root.

    Raises:
        EdgeError: the file isn't such a store.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with closing(self._connect()) as database:
                database.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise EdgeError(f"{path}: can't be used ({error}); give another --root, or remove the file") from None

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60, isolation_level=None)

    def record(self, pipeline: str, key: str, uri: str, type_: str, metadata: dict[str, Any]) -> Artifact:
        """Records an output; KFP gives it a display name and where its store is."""
        held = {"display_name": key, "store_session_info": _STORE_SESSION, **{name: _held(value) for name, value in metadata.items()}}
        with closing(self._connect()) as database:
            number = database.execute(
                "INSERT INTO artifacts (pipeline, uri, type, metadata) VALUES (?, ?, ?, ?)", (pipeline, uri, type_, json.dumps(held))
            ).lastrowid
        return Artifact(int(number or 0), uri, type_, held)

    def find(self, pipeline: str, uri: str, type_: str, metadata: dict[str, Any]) -> Artifact | None:
        """The newest artifact of that address and type that has all this metadata: what an importer takes again."""
        wanted = {name: _held(value) for name, value in metadata.items()}
        with closing(self._connect()) as database:
            rows = database.execute(
                "SELECT id, metadata FROM artifacts WHERE pipeline = ? AND uri = ? AND type = ? ORDER BY id DESC", (pipeline, uri, type_)
            ).fetchall()
        for number, text in rows:
            held = json.loads(text)
            if all(held.get(name) == value for name, value in wanted.items()):
                return Artifact(number, uri, type_, held)
        return None

    def remember(self, pipeline: str, fingerprint: str, outputs: Outputs) -> None:
        """Keeps a successful execution's outputs."""
        document = {
            "parameters": outputs.parameters,
            "artifacts": {key: [artifact.number for artifact in artifacts] for key, artifacts in outputs.artifacts.items()},
        }
        with closing(self._connect()) as database:
            database.execute(
                "INSERT INTO executions (pipeline, fingerprint, outputs) VALUES (?, ?, ?)", (pipeline, fingerprint, json.dumps(document))
            )

    def recall(self, pipeline: str, fingerprint: str) -> Outputs | None:
        """The outputs of the newest equal execution."""
        with closing(self._connect()) as database:
            row = database.execute(
                "SELECT outputs FROM executions WHERE pipeline = ? AND fingerprint = ? ORDER BY id DESC LIMIT 1", (pipeline, fingerprint)
            ).fetchone()
            if row is None:
                return None
            document = json.loads(row[0])
            artifacts = {
                key: [Artifact(number, *_fields(database, number)) for number in numbers] for key, numbers in document["artifacts"].items()
            }
        return Outputs(document["parameters"], artifacts)


def _fields(database: sqlite3.Connection, number: int) -> tuple[str, str, dict[str, Any]]:
    uri, type_, metadata = database.execute("SELECT uri, type, metadata FROM artifacts WHERE id = ?", (number,)).fetchone()
    return uri, type_, json.loads(metadata)


def _held(value: Any) -> Any:
    """ML Metadata has no bools and no lists: KFP stores 0 or 1, and wraps lists and structs."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, list):
        return {"list": value}
    return {"struct": value} if isinstance(value, dict) else value

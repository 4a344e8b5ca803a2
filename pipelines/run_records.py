"""The runs of a pipeline as ML Metadata has them: components, what each read and wrote, in which state."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tfx_edge.schemas import EdgeError, LineageArtifact, LineageStep


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        run_id: the orchestrator's.
        started: ISO 8601, UTC.
        steps: the components, in the order in which they began.
        blessed: of each ModelBlessing artifact, by its id.
    """

    run_id: str
    started: str
    steps: tuple[LineageStep, ...]
    blessed: dict[int, bool]


class Runs:
    """The runs of one pipeline, oldest first; each is read when it is asked for."""

    def __init__(self, store: Any, pipeline: Any) -> None:
        """Takes an MLMD store and the pipeline's context."""
        self._store = store
        self.pipeline: str = pipeline.name
        found = [c for c in store.get_children_contexts_by_context(pipeline.id) if c.type == "pipeline_run"]
        self._contexts = {c.name: c for c in sorted(found, key=lambda run: (run.create_time_since_epoch, run.id))}

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._contexts)

    def read(self, run_id: str) -> Run:
        """One of them.

        Raises:
            KeyError: there is none of this id.
        """
        context = self._contexts[run_id]
        executions = sorted(self._store.get_executions_by_context(context.id), key=lambda e: (e.create_time_since_epoch, e.id))
        events = self._store.get_events_by_execution_ids([e.id for e in executions]) if executions else []
        artifacts = {a.id: a for a in self._store.get_artifacts_by_id(sorted({e.artifact_id for e in events}))} if events else {}
        blessed = {
            a.id: bool(a.custom_properties["blessed"].int_value)
            for a in artifacts.values()
            if a.type == "ModelBlessing" and "blessed" in a.custom_properties
        }
        steps = tuple(self._step(e, [event for event in events if event.execution_id == e.id], artifacts) for e in executions)
        return Run(run_id, _time(context.create_time_since_epoch), steps, blessed)

    def _step(self, execution: Any, events: list[Any], artifacts: dict[int, Any]) -> LineageStep:
        from ml_metadata.proto import metadata_store_pb2 as mlmd

        node = next(c.name for c in self._store.get_contexts_by_execution(execution.id) if c.type == "node")
        state = mlmd.Execution.State.Name(execution.last_known_state)

        def of(kind: int) -> tuple[LineageArtifact, ...]:
            return tuple(
                LineageArtifact(key=event.path.steps[0].key, type=artifact.type, id=artifact.id, uri=artifact.uri)
                for event in events
                if event.type == kind and event.path.steps
                for artifact in [artifacts[event.artifact_id]]
            )

        took = (execution.last_update_time_since_epoch - execution.create_time_since_epoch) / 1000
        return LineageStep(
            component=node.removeprefix(f"{self.pipeline}."),
            state=state,
            started=_time(execution.create_time_since_epoch),
            seconds=None if state == "CACHED" or took < 0 else took,
            inputs=of(mlmd.Event.INPUT),
            outputs=of(mlmd.Event.OUTPUT),
        )


@contextmanager
def open_runs(metadata_db: Path, pipeline: str | None) -> Iterator[Runs]:
    """The runs of a pipeline in an SQLite metadata file.

    Args:
        metadata_db: the file.
        pipeline: its name; None where there is only one.

    Raises:
        EdgeError: no such pipeline, or several and no name, or none that ran.
    """
    from tfx.orchestration import metadata

    with metadata.Metadata(metadata.sqlite_metadata_connection_config(str(metadata_db))) as handle:
        try:
            contexts = {c.name: c for c in handle.store.get_contexts_by_type("pipeline")}
        except Exception as error:  # MLMD raises its own, of an empty store
            raise EdgeError(f"{metadata_db}: no pipeline ran there; name the metadata of one that did") from error
        names = ", ".join(sorted(contexts)) or "none"
        if pipeline is None and len(contexts) != 1:
            raise EdgeError(f"{metadata_db}: it has the pipelines {names}; name one with --pipeline")
        if pipeline is not None and pipeline not in contexts:
            raise EdgeError(f"pipeline {pipeline!r}: it is not in {metadata_db}, which has {names}; name one of these")
        runs = Runs(handle.store, contexts[pipeline] if pipeline is not None else next(iter(contexts.values())))
        if not runs.ids:
            raise EdgeError(f"pipeline {runs.pipeline!r}: no run in {metadata_db}; run it first")
        yield runs


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")

"""What a pipeline's latest run left in ML Metadata."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Output:
    """An artifact that a run made, or took from the cache.

    Attributes:
        uri: the artifact's folder.
        properties: its properties and custom properties by name.
        cached: whether an earlier run made it.
    """

    uri: str
    properties: dict[str, Any]
    cached: bool


def latest_outputs(metadata_db: Path, pipeline_name: str) -> dict[tuple[str, str], Output]:
    """The outputs of a pipeline's latest run in an SQLite metadata file, by component id and output key.

    Raises:
        LookupError: the pipeline has not run there.
    """
    from ml_metadata.proto import metadata_store_pb2 as mlmd
    from tfx.orchestration import metadata

    with metadata.Metadata(metadata.sqlite_metadata_connection_config(str(metadata_db))) as handle:
        store = handle.store
        pipeline = store.get_context_by_type_and_name("pipeline", pipeline_name)
        if pipeline is None:
            raise LookupError(f"pipeline {pipeline_name!r}: no run in {metadata_db}")
        runs = [c for c in store.get_children_contexts_by_context(pipeline.id) if c.type == "pipeline_run"]
        latest = max(runs, key=lambda run: (run.create_time_since_epoch, run.id))
        outputs: dict[tuple[str, str], Output] = {}
        for execution in store.get_executions_by_context(latest.id):
            cached = execution.last_known_state == mlmd.Execution.CACHED
            component = next(c.name for c in store.get_contexts_by_execution(execution.id) if c.type == "node").split(".", 1)[1]
            events = [e for e in store.get_events_by_execution_ids([execution.id]) if e.type == mlmd.Event.OUTPUT]
            artifacts = {a.id: a for a in store.get_artifacts_by_id([e.artifact_id for e in events])}
            for event in events:
                artifact = artifacts[event.artifact_id]
                properties = {
                    k: getattr(v, v.WhichOneof("value")) for k, v in [*artifact.properties.items(), *artifact.custom_properties.items()]
                }
                outputs[component, event.path.steps[0].key] = Output(artifact.uri, properties, cached)
    return outputs

"""Runs in ML Metadata, written by hand as TFX writes them, with the documents that a report is made of."""

from collections.abc import Mapping
from pathlib import Path

import run_reports
from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.orchestration import metadata

from tfx_edge.schemas import Config, GateReport

COMPLETE, CACHED, FAILED = mlmd.Execution.COMPLETE, mlmd.Execution.CACHED, mlmd.Execution.FAILED


class MetadataRuns:
    """A pipeline's metadata file, and a folder for artifacts beside it."""

    def __init__(self, folder: Path, pipeline: str = "digits") -> None:
        self.folder, self.pipeline = folder, pipeline
        self.database = folder / "metadata.db"
        self.store = metadata_store.MetadataStore(metadata.sqlite_metadata_connection_config(str(self.database)))
        self._context = self._put_context("pipeline", pipeline)

    def begin(self, run_id: str) -> "MetadataRuns":
        """A new run, in which components run from now on."""
        self._run = self._put_context("pipeline_run", run_id)
        self.store.put_parent_contexts([mlmd.ParentContext(parent_id=self._context, child_id=self._run)])
        return self

    def component(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, str | int], state: int = COMPLETE) -> dict[str, int]:
        """An execution; outputs are types of new artifacts, or ids of cached ones."""
        type_id = self.store.put_execution_type(mlmd.ExecutionType(name=f"components.{name.partition('.')[0]}"))
        [execution] = self.store.put_executions([mlmd.Execution(type_id=type_id, last_known_state=state)])
        node = self._put_context("node", f"{self.pipeline}.{name}")
        made = {
            key: found if isinstance(found, int) else self._artifact(f"{name}/{key}/{execution}", found) for key, found in outputs.items()
        }
        events = [(mlmd.Event.INPUT, key, i) for key, i in inputs.items()] + [(mlmd.Event.OUTPUT, key, i) for key, i in made.items()]
        self.store.put_events(
            [
                mlmd.Event(type=kind, artifact_id=i, execution_id=execution, path=mlmd.Event.Path(steps=[mlmd.Event.Path.Step(key=key)]))
                for kind, key, i in events
            ]
        )
        associations = [mlmd.Association(context_id=context, execution_id=execution) for context in (self._context, self._run, node)]
        self.store.put_attributions_and_associations([], associations)
        return made

    def write(self, artifact: int, **documents: Config) -> Path:
        """Puts documents into an artifact's folder, by their file's name without .json; __ stands for a folder."""
        [found] = self.store.get_artifacts_by_id([artifact])
        for name, document in documents.items():
            path = Path(found.uri) / f"{name.replace('__', '/')}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document.to_json())
        return Path(found.uri)

    def judged(self, name: str = "", report: GateReport | None = None, before: int | None = None) -> dict[str, int]:
        """A Quantizer, TFLiteExporter and EdgeValidator, with what they write; gives the gate's outputs and `model`."""
        report = report or run_reports.gate_report()
        trained = before if before is not None else self.component("Trainer", {}, {"model": "Model"})["model"]
        quantized = self.component(f"Quantizer{name}", {"float_model": trained}, {"model": "Model", "quantization_plan": "Plan"})
        self.write(quantized["model"], sparsity=run_reports.sparsity())
        self.write(quantized["quantization_plan"], plan=run_reports.plan())
        made = {"float_model": quantized["model"], "quantization_plan": quantized["quantization_plan"]}
        edge = self.component(f"TFLiteExporter{name}", made, {"model": "Model"})
        self.write(edge["model"], edge__manifest=run_reports.manifest())
        types = {"report": "tfx_edge.EdgeReport", "evaluation": "ModelEvaluation", "blessing": "ModelBlessing"}
        gate = self.component(f"EdgeValidator{name}", {"model": edge["model"], "baseline_model": trained}, types)
        self.write(gate["report"], report=report)
        self.write(gate["evaluation"], decisions=run_reports.decisions())
        [blessing] = self.store.get_artifacts_by_id([gate["blessing"]])
        blessing.custom_properties["blessed"].int_value = int(report.blessed)
        self.store.put_artifacts([blessing])
        return {**gate, "model": edge["model"]}

    def _put_context(self, kind: str, name: str) -> int:
        type_id = self.store.put_context_type(mlmd.ContextType(name=kind))
        known = self.store.get_context_by_type_and_name(kind, name)
        return known.id if known is not None else self.store.put_contexts([mlmd.Context(type_id=type_id, name=name)])[0]

    def _artifact(self, place: str, kind: str) -> int:
        artifact_type = mlmd.ArtifactType(name=kind)
        uri = self.folder / "artifacts" / place
        uri.mkdir(parents=True)
        return self.store.put_artifacts([mlmd.Artifact(type_id=self.store.put_artifact_type(artifact_type), uri=str(uri))])[0]

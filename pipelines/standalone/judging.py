"""A flatbuffer against its float baseline, on examples in files: EdgeValidator's gate."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.edge_validator.executor import Executor
from tfx_edge.litert.runner import Runner
from tfx_edge.pipelines.standalone.artifacts import (
    artifact,
    context,
    edge_model_artifact,
    examples_artifact,
    saved_model_artifact,
    schema_artifact,
)
from tfx_edge.pipelines.standalone.schema import infer_schema
from tfx_edge.schemas import GateConfig, GateReport, JudgedModel, Manifest, PairedDecisions
from tfx_edge.schemas.artifact_types import EdgeReport
from tfx_edge.schemas.release import MANIFEST


def validate(model: Path, baseline: Path, examples: Sequence[Path], config: GateConfig) -> JudgedModel:
    """Judges a flatbuffer as EdgeValidator does in a pipeline; gives its report, and what else there is to tell of the model.

    Args:
        model: a .tflite file, wherever it was made, or a bundle's folder.
        baseline: a SavedModel that can be called on the same features, as `model.save` or `tf.saved_model.save` wrote it.
        examples: TFRecord files of tf.Examples with the model's inputs and the label, which the model wasn't trained on.
        config: the conditions; its split doesn't matter.

    Raises:
        EdgeError: a file isn't what it should be, or the config doesn't fit the examples. What is wrong with the model isn't raised: it is
            a reason in the report.
    """
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
        folder = Path(scratch)
        candidate = edge_model_artifact(model, folder / "model")
        schema = infer_schema(examples, _shapes(folder / "model" / "Format-Serving" / "tflite", model))
        inputs = {
            keys.MODEL: [candidate],
            keys.BASELINE_MODEL: [saved_model_artifact(baseline, folder / "baseline")],
            keys.EXAMPLES: [examples_artifact({config.split: examples}, folder / "examples")],
            keys.SCHEMA: [schema_artifact(schema, folder / "schema")],
        }
        outputs = {
            keys.BLESSING: [artifact(standard_artifacts.ModelBlessing, folder / "blessing")],
            keys.EVALUATION: [artifact(standard_artifacts.ModelEvaluation, folder / "evaluation")],
            keys.REPORT: [artifact(EdgeReport, folder / "report")],
        }
        Executor(context(folder / "tmp")).Do(inputs, outputs, {keys.CONFIG: config.to_json(), "current_component_id": None})
        manifest, decisions = folder / "model" / MANIFEST, folder / "evaluation" / "decisions.json"
        missing = {"plan": "a flatbuffer doesn't tell it.", "sparsity": "a flatbuffer doesn't tell it."}
        return JudgedModel(
            name=model.name,
            report=GateReport.from_json((folder / "report" / "report.json").read_bytes()),
            decisions=PairedDecisions.from_json(decisions.read_bytes()) if decisions.exists() else None,
            manifest=Manifest.from_json(manifest.read_bytes()) if manifest.exists() else None,
            missing=missing if manifest.exists() else {**missing, "manifest": "the model came without."},
        )


def _shapes(flatbuffer: Path, name: Path) -> dict[str, tuple[int, ...]]:
    """The inputs' shapes without the batch."""
    signature = Runner(flatbuffer.read_bytes(), name=str(name)).signature
    return {spec.name: tuple(size or 0 for size in spec.shape[1:]) for spec in signature.inputs}

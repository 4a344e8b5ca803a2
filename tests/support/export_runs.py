"""TFLiteExporter run as an orchestrator runs it, with ids and names of a run."""

from pathlib import Path
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.proto.orchestration import pipeline_pb2
from tfx.types.standard_artifacts import Model

from tfx_edge.components import keys
from tfx_edge.components.tflite_exporter.executor import Executor
from tfx_edge.schemas import ExportConfig
from tfx_edge.schemas.artifact_types import QuantizationPlan


def export_in_run(folder: str, run: str, number: int) -> None:
    """Exports `quantizer/model` by `quantizer/plan` to `bundle`, with the labels of `labels.txt`, all in one folder.

    Args:
        folder: where these lie.
        run: the run's id.
        number: the execution's; the artifacts' are the next ones.
    """
    artifacts: dict[str, Any] = {keys.FLOAT_MODEL: Model(), keys.QUANTIZATION_PLAN: QuantizationPlan(), keys.MODEL: Model()}
    for place, (artifact, name) in enumerate(zip(artifacts.values(), ("quantizer/model", "quantizer/plan", "bundle"), strict=True)):
        artifact.uri, artifact.id = str(Path(folder, name)), number + 1 + place
    context = BaseExecutor.Context(
        unique_id=str(number),
        pipeline_info=pipeline_pb2.PipelineInfo(id="penguins"),
        pipeline_node=pipeline_pb2.PipelineNode(node_info=pipeline_pb2.NodeInfo(id="TFLiteExporter")),
        pipeline_run_id=run,
    )
    config = ExportConfig(name="Species", labels=str(Path(folder, "labels.txt")), license="Apache-2.0", targets=("tflm",))
    Path(folder, "bundle").mkdir()  # as TFX does
    inputs = {key: [artifacts[key]] for key in (keys.FLOAT_MODEL, keys.QUANTIZATION_PLAN)}
    Executor(context).Do(inputs, {keys.MODEL: [artifacts[keys.MODEL]]}, {keys.CONFIG: config.to_json()})

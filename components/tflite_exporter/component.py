"""TFLiteExporter: writes the edge model.

Converts the float model and carries out the Quantizer's plan. It needs no data, and the same model and plan give the same
bytes, so an export can be repeated and compared.
"""

from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import channel, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.tflite_exporter import executor
from tfx_edge.schemas import ExportConfig
from tfx_edge.schemas.artifact_types import QuantizationPlan


class TFLiteExporterSpec(ComponentSpec):
    """Inputs, outputs and properties of TFLiteExporter."""

    PARAMETERS = {keys.CONFIG: ExecutionParameter(type=str)}
    INPUTS = {
        keys.FLOAT_MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.QUANTIZATION_PLAN: ChannelParameter(type=QuantizationPlan, optional=True),
        keys.TRANSFORM_GRAPH: ChannelParameter(type=standard_artifacts.TransformGraph, optional=True),
    }
    OUTPUTS = {keys.MODEL: ChannelParameter(type=standard_artifacts.Model)}


class TFLiteExporter(base_component.BaseComponent):
    """Float model and plan to a flatbuffer with its manifest.

    Outputs:
        model: `Format-Serving/tflite`, which stock Pusher and Evaluator take, `edge/manifest.json` and `edge/golden.npz`; custom
            properties `scheme`, `digest`, `size_bytes` and `gzip_bytes`.

    Example:
        exporter = TFLiteExporter(
            model=quantizer.outputs["model"],
            quantization_plan=quantizer.outputs["quantization_plan"],
            transform_graph=transform.outputs["transform_graph"],
            config=ExportConfig(description="Handwritten digits, 8 x 8 pixels"),
        )
    """

    SPEC_CLASS = TFLiteExporterSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        model: channel.BaseChannel,
        quantization_plan: channel.BaseChannel | None = None,
        transform_graph: channel.BaseChannel | None = None,
        config: ExportConfig | RuntimeParameter = ExportConfig(),
    ) -> None:
        """Wires the component.

        Args:
            model: the float model that the plan was made for: Quantizer's output `model`, or what Quantizer was given.
            quantization_plan: without it the flatbuffer is the float model.
            transform_graph: of the Transform before the Trainer; needed for a model that was saved with nothing but signatures on
                raw tf.Examples.
            config: what the manifest says, or a RuntimeParameter that holds it as JSON.
        """
        super().__init__(
            TFLiteExporterSpec(
                **{
                    keys.FLOAT_MODEL: model,
                    keys.QUANTIZATION_PLAN: quantization_plan,
                    keys.TRANSFORM_GRAPH: transform_graph,
                    keys.CONFIG: config.to_json() if isinstance(config, ExportConfig) else config,
                    keys.MODEL: channel.Channel(standard_artifacts.Model),
                }
            )
        )

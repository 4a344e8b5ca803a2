"""The whole tail of a pipeline, from the Trainer's float model to a blessed edge model, in one call."""

from collections.abc import Sequence

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.types.channel import BaseChannel

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.component import CalibrationGen
from tfx_edge.components.edge_validator.component import EdgeValidator
from tfx_edge.components.pruner.component import Pruner
from tfx_edge.components.quantizer.component import Quantizer
from tfx_edge.components.tflite_exporter.component import TFLiteExporter
from tfx_edge.schemas import CalibrationConfig, ExportConfig, GateConfig, PruningConfig, QuantizationConfig


class EdgeStage(list[BaseComponent]):
    """The components in their order, and the channels that a Pusher or a component of one's own takes up."""

    def __init__(self, components: Sequence[BaseComponent], exporter: BaseComponent, validator: BaseComponent) -> None:
        super().__init__(components)
        self.model: BaseChannel = exporter.outputs[keys.MODEL]
        self.blessing: BaseChannel = validator.outputs[keys.BLESSING]
        self.evaluation: BaseChannel = validator.outputs[keys.EVALUATION]
        self.report: BaseChannel = validator.outputs[keys.REPORT]


def edge_stage(
    trainer: BaseComponent,
    transform: BaseComponent,
    *,
    gate: GateConfig,
    calibration: CalibrationConfig = CalibrationConfig(),
    pruning: PruningConfig | None = None,
    quantization: QuantizationConfig = QuantizationConfig(),
    export: ExportConfig = ExportConfig(),
    model_fn: str | None = None,
    name: str | None = None,
) -> EdgeStage:
    """Wires CalibrationGen, Pruner, Quantizer, TFLiteExporter and EdgeValidator behind a Trainer.

    Example::

        edge = edge_stage(trainer, transform, gate=GateConfig(
            label_key="label", thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01),)))
        pusher = Pusher(model=edge.model, model_blessing=edge.blessing, push_destination=...)
        pipeline = Pipeline(components=[..., transform, trainer, *edge, pusher], ...)

    Args:
        trainer: has the float model as output `model`; it is also the baseline of the gate.
        transform: has `transformed_examples` and `transform_graph`.
        gate: what the edge model must keep to be blessed.
        calibration: which examples the activation ranges are taken from, where the scheme needs ranges.
        pruning: None leaves the Pruner out.
        quantization: scheme of the edge model.
        export: what the manifest says.
        model_fn: with pruning, for a model that was saved without Keras metadata: import path of a function that builds it.
        name: suffix of the components' ids, for several stages in one pipeline.

    Returns:
        The components, a list to be unpacked into a pipeline's, with the channels `model`, `blessing`, `evaluation` and `report`.
    """
    baseline = trainer.outputs["model"]
    examples = transform.outputs["transformed_examples"]
    graph = transform.outputs["transform_graph"]
    components: list[BaseComponent] = []
    calibration_data: BaseChannel | None = None
    if quantization.needs_calibration:
        calibration_gen = CalibrationGen(examples=examples, transform_graph=graph, config=calibration)
        components.append(calibration_gen)
        calibration_data = calibration_gen.outputs[keys.CALIBRATION_DATA]
    model = baseline
    if pruning is not None:
        pruner = Pruner(model=model, examples=examples, transform_graph=graph, config=pruning, model_fn=model_fn)
        components.append(pruner)
        model = pruner.outputs[keys.MODEL]
    quantizer = Quantizer(model=model, calibration_data=calibration_data, transform_graph=graph, config=quantization)
    exporter = TFLiteExporter(
        model=quantizer.outputs[keys.MODEL],
        quantization_plan=quantizer.outputs[keys.QUANTIZATION_PLAN],
        transform_graph=graph,
        config=export,
    )
    validator = EdgeValidator(
        model=exporter.outputs[keys.MODEL], baseline_model=baseline, examples=examples, transform_graph=graph, config=gate
    )
    components += [quantizer, exporter, validator]
    if name is not None:
        components = [component.with_id(f"{type(component).__name__}.{name}") for component in components]
    return EdgeStage(components, exporter, validator)

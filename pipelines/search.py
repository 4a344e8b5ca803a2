"""An edge stage whose techniques a search chooses."""

from tfx.dsl.components.base.base_component import BaseComponent

from tfx_edge.components import keys
from tfx_edge.components.compression_tuner.component import CompressionTuner
from tfx_edge.pipelines.stage import EdgeStage, wire_calibration, wire_gate
from tfx_edge.schemas import ExportConfig, GateConfig, SearchConfig


def tuned_stage(
    trainer: BaseComponent,
    transform: BaseComponent,
    search: SearchConfig,
    *,
    gate: GateConfig,
    export: ExportConfig = ExportConfig(),
    model_fn: str | None = None,
    module_path: str | None = None,
) -> EdgeStage:
    """Wires CompressionTuner, TFLiteExporter and EdgeValidator behind a Trainer: `edge_stage` with techniques that are searched.

    The gate should look at a split that the search didn't: a search picks what does well on its own.

    Example:
        edge = tuned_stage(trainer, transform, SearchConfig(...), gate=gate)
        pusher = Pusher(model=edge.model, model_blessing=edge.blessing, push_destination=...)

    Args:
        trainer: see `edge_stage`.
        transform: see `edge_stage`.
        search: the techniques and which of their fields are searched.
        gate: see `edge_stage`.
        export: see `edge_stage`.
        model_fn: see `edge_stage`.
        module_path: see `edge_stage`.
    """
    components: list[BaseComponent] = []
    if search.may_calibrate:
        components.append(wire_calibration(transform, search.techniques.calibration, gate, None))
    tuner = CompressionTuner(
        model=trainer.outputs["model"],
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        calibration_data=components[0].outputs[keys.CALIBRATION_DATA] if components else None,
        config=search,
        model_fn=model_fn,
        module_path=module_path,
    )
    stage = wire_gate(trainer, transform, tuner, gate, export, None)
    stage[:0] = [*components, tuner]
    return stage

"""The whole tail of a pipeline, from the Trainer's float model to a blessed edge model, in one call."""

from collections.abc import Sequence

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.types.channel import BaseChannel

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.component import CalibrationGen
from tfx_edge.components.clusterer.component import Clusterer
from tfx_edge.components.distiller.component import Distiller
from tfx_edge.components.edge_promoter.component import EdgePromoter
from tfx_edge.components.edge_validator.component import EdgeValidator
from tfx_edge.components.keras_component import KerasComponent
from tfx_edge.components.low_rank_factorizer.component import LowRankFactorizer
from tfx_edge.components.pruner.component import Pruner
from tfx_edge.components.quantizer.component import Quantizer
from tfx_edge.components.tflite_exporter.component import TFLiteExporter
from tfx_edge.schemas import (
    CalibrationConfig,
    ClusteringConfig,
    Config,
    DistillationConfig,
    EdgeError,
    ExportConfig,
    GateConfig,
    LowRankConfig,
    PromotionConfig,
    PruningConfig,
    QuantizationConfig,
    Techniques,
)


class EdgeStage(list[BaseComponent]):
    """The components in their order, and the channels that a Pusher or a component of one's own takes up."""

    def __init__(self, components: Sequence[BaseComponent], exporter: BaseComponent, validator: BaseComponent) -> None:
        super().__init__(components)
        self.model: BaseChannel = exporter.outputs[keys.MODEL]
        self.blessing: BaseChannel = validator.outputs[keys.BLESSING]
        self.evaluation: BaseChannel = validator.outputs[keys.EVALUATION]
        self.report: BaseChannel = validator.outputs[keys.REPORT]
        self.pushed_model: BaseChannel | None = None


def edge_stage(
    trainer: BaseComponent,
    transform: BaseComponent,
    *,
    gate: GateConfig,
    calibration: CalibrationConfig = CalibrationConfig(),
    distillation: DistillationConfig | None = None,
    low_rank: LowRankConfig | None = None,
    pruning: PruningConfig | None = None,
    clustering: ClusteringConfig | None = None,
    quantization: QuantizationConfig = QuantizationConfig(),
    export: ExportConfig = ExportConfig(),
    promotion: PromotionConfig | None = None,
    model_fn: str | None = None,
    module_path: str | None = None,
    name: str | None = None,
) -> EdgeStage:
    """Wires CalibrationGen, the techniques asked for, Quantizer, TFLiteExporter, EdgeValidator and EdgePromoter behind a Trainer.

    Example:
        edge = edge_stage(trainer, transform, gate=GateConfig(label_key="label", thresholds=(
            Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01),)))
        pusher = Pusher(model=edge.model, model_blessing=edge.blessing, push_destination=...)
        pipeline = Pipeline(components=[..., transform, trainer, *edge, pusher], ...)

    Args:
        trainer: has the float model as output `model`, a Trainer or a ModelImporter; it is also the baseline of the gate.
        transform: has `transformed_examples` and `transform_graph`.
        gate: what the edge model must keep to be blessed. Where signatures are exported and the gate names none it judges
            `serving_default`, or the first of them.
        calibration: see `Techniques`.
        distillation: see `Techniques`.
        low_rank: see `Techniques`.
        pruning: see `Techniques`.
        clustering: see `Techniques`.
        quantization: see `Techniques`.
        export: what the bundle holds. With features "raw" the gate feeds the model what `transform` was given.
        promotion: the release channel that a blessed model goes to; None leaves that to a Pusher behind the stage.
        model_fn: with a technique that trains, or layers that block a device, for a model that was saved without Keras metadata:
            import path of a function that builds it.
        module_path: import path of a module with the user's `dataset_fn`, `loss_fn` or `student_fn` for the techniques that train.
        name: suffix of the components' ids, for several stages in one pipeline.

    Raises:
        EdgeError: an export of features "raw" behind a Transform without an input `examples`.

    Returns:
        The components, a list to be unpacked into a pipeline's, with the channels `model`, `blessing`, `evaluation` and `report`, and
        with a promotion `pushed_model`.
    """
    techniques = Techniques(
        distillation=distillation,
        low_rank=low_rank,
        pruning=pruning,
        clustering=clustering,
        quantization=quantization,
        calibration=calibration,
    )
    calibration_gen = None
    if quantization.uses_calibration:
        calibration_gen = wire_calibration(transform, calibration, gate, name)
    stage = wire_tail(trainer, transform, techniques, gate, calibration_gen, export, model_fn, module_path, name)
    if calibration_gen is not None:
        stage.insert(0, calibration_gen)
    if promotion is not None:
        wire_promotion(stage, trainer, transform, promotion, name)
    return stage


def wire_promotion(stage: EdgeStage, trainer: BaseComponent, transform: BaseComponent, config: PromotionConfig, name: str | None) -> None:
    """Puts an EdgePromoter at the end of a stage, with all that a release's provenance can tell."""
    promoter = EdgePromoter(
        model=stage.model,
        model_blessing=stage.blessing,
        report=stage.report,
        baseline_model=trainer.outputs["model"],
        examples=transform.inputs.get(keys.EXAMPLES),
        config=config,
    )
    stage.append(_named(promoter, name))
    stage.pushed_model = promoter.outputs[keys.PUSHED_MODEL]


def wire_calibration(transform: BaseComponent, config: CalibrationConfig, gate: GateConfig, name: str | None) -> BaseComponent:
    """The component that samples the examples that activation ranges are taken from, none of which the gate evaluates on."""
    if config.held_out is None and gate.split not in ("eval", config.split):
        config = config.model_copy(update={"held_out": (gate.split,)})
    component = CalibrationGen(
        examples=transform.outputs["transformed_examples"], transform_graph=transform.outputs["transform_graph"], config=config
    )
    return _named(component, name)


def wire_tail(
    trainer: BaseComponent,
    transform: BaseComponent,
    techniques: Techniques,
    gate: GateConfig,
    calibration_gen: BaseComponent | None,
    export: ExportConfig,
    model_fn: str | None,
    module_path: str | None,
    name: str | None,
) -> EdgeStage:
    """All of an edge stage but CalibrationGen; see `edge_stage`."""
    model = trainer.outputs["model"]
    examples = transform.outputs["transformed_examples"]
    graph = transform.outputs["transform_graph"]
    components: list[BaseComponent] = []
    for kind, config in _keras_steps(techniques):
        step = kind(model=model, examples=examples, transform_graph=graph, config=config, model_fn=model_fn, module_path=module_path)
        components.append(_named(step, name))
        model = step.outputs[keys.MODEL]
    trains, target = techniques.quantization.qat is not None, techniques.quantization.accuracy_target
    trains = trains or (target is not None and target.qat is not None)
    quantizer = Quantizer(
        model=model,
        calibration_data=None if calibration_gen is None else calibration_gen.outputs[keys.CALIBRATION_DATA],
        transform_graph=graph,
        config=techniques.quantization,
        examples=examples if trains or target else None,
        model_fn=model_fn,
        module_path=module_path if trains else None,
    )
    components.append(_named(quantizer, name))
    conversion = techniques.quantization.conversion
    if conversion.signatures and gate.signature is None:  # the baseline has it, and may have others
        gate = gate.model_copy(update={"signature": conversion.main_signature})
    gated = wire_gate(trainer, transform, quantizer, gate, export, name)
    gated[:0] = components
    return gated


def wire_gate(
    trainer: BaseComponent, transform: BaseComponent, quantized: BaseComponent, gate: GateConfig, export: ExportConfig, name: str | None
) -> EdgeStage:
    """TFLiteExporter and EdgeValidator behind a component with the outputs `model` and `quantization_plan`; see `edge_stage`."""
    raw = export.features == "raw"
    if raw and keys.EXAMPLES not in transform.inputs:
        raise EdgeError(f"features 'raw': {transform.id} has no input 'examples', which the gate feeds the model; give TFX's Transform")
    exporter = TFLiteExporter(
        model=quantized.outputs[keys.MODEL],
        quantization_plan=quantized.outputs[keys.QUANTIZATION_PLAN],
        transform_graph=transform.outputs["transform_graph"],
        config=export,
    )
    validator = EdgeValidator(
        model=exporter.outputs[keys.MODEL],
        baseline_model=trainer.outputs["model"],
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        config=gate,
        raw_examples=transform.inputs[keys.EXAMPLES] if raw else None,
    )
    return EdgeStage([_named(component, name) for component in (exporter, validator)], exporter, validator)


def _keras_steps(techniques: Techniques) -> list[tuple[type[KerasComponent], Config]]:
    """The components on the Keras side, each with its config."""
    every: list[tuple[type[KerasComponent], Config | None]] = [
        (Distiller, techniques.distillation),
        (LowRankFactorizer, techniques.low_rank),
        (Pruner, techniques.pruning),
        (Clusterer, techniques.clustering),
    ]
    return [(component, config) for component, config in every if config is not None]


def _named(component: BaseComponent, name: str | None) -> BaseComponent:
    return component if name is None else component.with_id(f"{type(component).__name__}.{name}")

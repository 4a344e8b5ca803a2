"""Several ways to an edge model side by side, and the best blessed one of them."""

import re
from collections.abc import Mapping, Sequence

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.types.channel import BaseChannel

from tfx_edge.components import keys
from tfx_edge.components.model_selector.component import ModelSelector
from tfx_edge.pipelines.stage import wire_calibration, wire_tail
from tfx_edge.schemas import CalibrationConfig, EdgeError, ExportConfig, GateConfig, SelectionConfig, Techniques


class ParetoStage(list[BaseComponent]):
    """The components in their order, and the channels that a Pusher or a component of one's own takes up."""

    def __init__(self, components: Sequence[BaseComponent], selector: BaseComponent) -> None:
        super().__init__(components)
        self.model: BaseChannel = selector.outputs[keys.MODEL]
        self.blessing: BaseChannel = selector.outputs[keys.BLESSING]
        self.report: BaseChannel = selector.outputs[keys.REPORT]


def pareto(
    trainer: BaseComponent,
    transform: BaseComponent,
    variants: Mapping[str, Techniques],
    *,
    gate: GateConfig,
    selection: SelectionConfig = SelectionConfig(),
    export: ExportConfig = ExportConfig(),
    model_fn: str | None = None,
    module_path: str | None = None,
) -> ParetoStage:
    """Fans a Trainer's model out into variants, gates each against the same float baseline, and selects the best blessed one.

    The variants are branches without a tie among them, so an orchestrator runs them in parallel. All of them stay in ML
    Metadata, blessed or not; the selector's report says what each costs and which lie on the front.

    Example:
        edge = pareto(trainer, transform, {
            "int8": Techniques(),
            "pruned": Techniques(pruning=PruningConfig(target_sparsity=0.8, fine_tuning=tuning)),
        }, gate=gate)
        pusher = Pusher(model=edge.model, model_blessing=edge.blessing, push_destination=...)

    Args:
        trainer: see `edge_stage`.
        transform: see `edge_stage`.
        variants: what is done to the model, by a name that ends the ids of the variant's components.
        gate: one for all variants.
        selection: what the best one is.
        export: see `edge_stage`.
        model_fn: see `edge_stage`.
        module_path: see `edge_stage`.

    Raises:
        EdgeError: no variants, or a name that can't be part of a component's id.
    """
    if not variants:
        raise EdgeError("pareto: no variants; name at least one, such as {'int8': Techniques()}")
    for name in variants:
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            raise EdgeError(f"pareto: variant {name!r}; expected letters, digits and underscores, since component ids end with it")
    samples: dict[CalibrationConfig, BaseComponent] = {}  # variants that calibrate alike share the sample
    for name, techniques in variants.items():
        if techniques.quantization.uses_calibration and techniques.calibration not in samples:
            samples[techniques.calibration] = wire_calibration(transform, techniques.calibration, gate, name)
    stages = [
        wire_tail(
            trainer,
            transform,
            techniques,
            gate,
            samples[techniques.calibration] if techniques.quantization.uses_calibration else None,
            export,
            model_fn,
            module_path,
            name,
        )
        for name, techniques in variants.items()
    ]
    selector = ModelSelector(
        models=[stage.model for stage in stages],
        blessings=[stage.blessing for stage in stages],
        reports=[stage.report for stage in stages],
        config=selection,
    )
    return ParetoStage([*samples.values(), *(component for stage in stages for component in stage), selector], selector)

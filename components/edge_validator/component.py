"""EdgeValidator: decides whether an edge model may leave.

Evaluates the flatbuffer beside the float model it was made from, on the same examples, and blesses it only when every
condition of its `GateConfig` holds, overall and in each slice. Whatever can't be measured counts against the model. The
blessing is TFX's own, so a stock Pusher after it pushes nothing that isn't blessed; the report says why.
"""

from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import channel, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.edge_validator import executor
from tfx_edge.schemas import EdgeError, GateConfig
from tfx_edge.schemas.artifact_types import EdgeReport


class EdgeValidatorSpec(ComponentSpec):
    """Inputs, outputs and properties of EdgeValidator."""

    PARAMETERS = {keys.CONFIG: ExecutionParameter(type=str)}
    INPUTS = {
        keys.MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.BASELINE_MODEL: ChannelParameter(type=standard_artifacts.Model, optional=True),
        keys.EXAMPLES: ChannelParameter(type=standard_artifacts.Examples),
        keys.TRANSFORM_GRAPH: ChannelParameter(type=standard_artifacts.TransformGraph, optional=True),
        keys.SCHEMA: ChannelParameter(type=standard_artifacts.Schema, optional=True),
        keys.RAW_EXAMPLES: ChannelParameter(type=standard_artifacts.Examples, optional=True),
    }
    OUTPUTS = {
        keys.BLESSING: ChannelParameter(type=standard_artifacts.ModelBlessing),
        keys.EVALUATION: ChannelParameter(type=standard_artifacts.ModelEvaluation),
        keys.REPORT: ChannelParameter(type=EdgeReport),
    }


class EdgeValidator(base_beam_component.BaseBeamComponent):
    """The gate between an edge model and the devices.

    Outputs:
        blessing: TFX's ModelBlessing, as its Evaluator writes it.
        evaluation: TFX's ModelEvaluation, for `tfma.load_eval_result` and TFMA's views; empty when the models couldn't be run.
        report: `report.json`, a `GateReport`: the verdict with its reasons, and every metric in every slice.

    Example:
        validator = EdgeValidator(
            model=exporter.outputs["model"],
            baseline_model=trainer.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=GateConfig(
                label_key="digit",
                thresholds=[Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01, lower_bound=0.95)],
                slices=[Slice(feature_keys=["digit"])],
            ),
        )
        pusher = Pusher(model=exporter.outputs["model"], model_blessing=validator.outputs["blessing"], ...)
    """

    SPEC_CLASS = EdgeValidatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        model: channel.BaseChannel,
        examples: channel.BaseChannel,
        config: GateConfig | RuntimeParameter,
        baseline_model: channel.BaseChannel | None = None,
        transform_graph: channel.BaseChannel | None = None,
        schema: channel.BaseChannel | None = None,
        raw_examples: channel.BaseChannel | None = None,
    ) -> None:
        """Wires the gate.

        Args:
            model: the candidate, an edge model with `Format-Serving/tflite`.
            examples: transformed Examples that the model wasn't trained on; `config.split` names the split.
            config: the conditions of a blessing, or a RuntimeParameter that holds them as JSON.
            baseline_model: the float model, as a Trainer saves it. Without it nothing is blessed.
            transform_graph: of the Transform that made the examples; names and types the features.
            schema: of the examples, in a pipeline without Transform.
            raw_examples: the Examples that Transform was given, ExampleGen's, for a model that was exported with features "raw". The
                gate then evaluates on these, and transforms them itself with transform_graph for labels, slices and baseline.

        Raises:
            EdgeError: a max_drop without a baseline, neither transform_graph nor schema, a metric that doesn't exist, or raw_examples
                without transform_graph.
        """
        if raw_examples is not None and transform_graph is None:
            raise EdgeError("EdgeValidator with raw_examples without transform_graph: nothing transforms them; give it Transform's")
        if transform_graph is None and schema is None:
            raise EdgeError("EdgeValidator without transform_graph or schema: the examples' features are unknown; give it one of the two")
        if isinstance(config, GateConfig):
            _check(config, baseline_model)
        super().__init__(
            EdgeValidatorSpec(
                **{
                    keys.MODEL: model,
                    keys.BASELINE_MODEL: baseline_model,
                    keys.EXAMPLES: examples,
                    keys.TRANSFORM_GRAPH: transform_graph,
                    keys.SCHEMA: schema,
                    keys.RAW_EXAMPLES: raw_examples,
                    keys.CONFIG: config.to_json() if isinstance(config, GateConfig) else config,
                    keys.BLESSING: channel.Channel(standard_artifacts.ModelBlessing),
                    keys.EVALUATION: channel.Channel(standard_artifacts.ModelEvaluation),
                    keys.REPORT: channel.Channel(EdgeReport),
                }
            )
        )


def _check(config: GateConfig, baseline_model: channel.BaseChannel | None) -> None:
    drops = [t.name for t in config.thresholds if t.max_drop is not None]
    if drops and baseline_model is None:
        raise EdgeError(
            f"EdgeValidator: max_drop of {drops[0]} without baseline_model; give it the Trainer's model, or bound the candidate alone"
        )
    from tfx_edge.components.edge_validator.eval_config import metric_names  # imports TFMA

    metric_names(config)

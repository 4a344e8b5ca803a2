"""EdgePromoter: publishes a blessed edge model to a signed release channel.

Takes the place of a Pusher. Devices follow the channel by TUF's rules: they take a model only with valid signatures, never an older one
again, and only after its self-test has passed on the device itself.
"""

from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import channel, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.edge_promoter import executor
from tfx_edge.schemas import EdgeError, PromotionConfig
from tfx_edge.schemas.artifact_types import EdgeReport


class EdgePromoterSpec(ComponentSpec):
    """Inputs, outputs and properties of EdgePromoter."""

    PARAMETERS = {keys.CONFIG: ExecutionParameter(type=str)}
    INPUTS = {
        keys.MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.MODEL_BLESSING: ChannelParameter(type=standard_artifacts.ModelBlessing, optional=True),
        keys.INFRA_BLESSING: ChannelParameter(type=standard_artifacts.InfraBlessing, optional=True),
        keys.REPORT: ChannelParameter(type=EdgeReport, optional=True),
        keys.BASELINE_MODEL: ChannelParameter(type=standard_artifacts.Model, optional=True),
        keys.EXAMPLES: ChannelParameter(type=standard_artifacts.Examples, optional=True),
    }
    OUTPUTS = {keys.PUSHED_MODEL: ChannelParameter(type=standard_artifacts.PushedModel)}


class EdgePromoter(base_component.BaseComponent):
    """Blessed edge model to a release in a channel.

    Outputs:
        pushed_model: TFX's PushedModel with a copy of the flatbuffer; custom properties as a Pusher sets them: `pushed`, 1 or 0,
            `pushed_destination`, the channel, and `pushed_version`, the release's number in it.

    Example:
        promoter = EdgePromoter(
            model=exporter.outputs["model"],
            model_blessing=validator.outputs["blessing"],
            report=validator.outputs["report"],
            baseline_model=trainer.outputs["model"],
            examples=example_gen.outputs["examples"],
            config=PromotionConfig(channels="s3://fleet/channels", keyring="/secrets/keyring.json"),
        )
    """

    SPEC_CLASS = EdgePromoterSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        model: channel.BaseChannel,
        config: PromotionConfig | RuntimeParameter,
        model_blessing: channel.BaseChannel | None = None,
        infra_blessing: channel.BaseChannel | None = None,
        report: channel.BaseChannel | None = None,
        baseline_model: channel.BaseChannel | None = None,
        examples: channel.BaseChannel | None = None,
    ) -> None:
        """Wires the component.

        Args:
            model: an edge model, as TFLiteExporter writes it.
            config: the channel and the keys by reference, or a RuntimeParameter that holds it as JSON.
            model_blessing: EdgeValidator's, or an Evaluator's, of this very model.
            infra_blessing: an InfraValidator's. Where both are given, both must bless.
            report: EdgeValidator's, for the release's provenance, as all below.
            baseline_model: the float model that the gate compared with.
            examples: ExampleGen's.

        Raises:
            EdgeError: no blessing is given: nothing is published that wasn't judged.
        """
        if model_blessing is None and infra_blessing is None:
            raise EdgeError("EdgePromoter without model_blessing or infra_blessing; give it EdgeValidator's output blessing")
        super().__init__(
            EdgePromoterSpec(
                **{
                    keys.MODEL: model,
                    keys.MODEL_BLESSING: model_blessing,
                    keys.INFRA_BLESSING: infra_blessing,
                    keys.REPORT: report,
                    keys.BASELINE_MODEL: baseline_model,
                    keys.EXAMPLES: examples,
                    keys.CONFIG: config.to_json() if isinstance(config, PromotionConfig) else config,
                    keys.PUSHED_MODEL: channel.Channel(standard_artifacts.PushedModel),
                }
            )
        )

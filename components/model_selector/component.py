"""ModelSelector: hands on the best of several edge models, of those alone that their gates blessed."""

from collections.abc import Sequence

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.model_selector.executor import Executor
from tfx_edge.schemas import EdgeError, SelectionConfig
from tfx_edge.schemas.artifact_types import EdgeReport


class ModelSelectorSpec(ComponentSpec):
    """Outputs and properties of ModelSelector, and no inputs; `_spec` makes those that a selector of so many candidates has."""

    PARAMETERS = {keys.CONFIG: ExecutionParameter(type=str)}
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        keys.MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.BLESSING: ChannelParameter(type=standard_artifacts.ModelBlessing),
        keys.REPORT: ChannelParameter(type=EdgeReport),
    }


def _spec(candidates: int) -> type[ModelSelectorSpec]:
    """An input of its own for each artifact: an input of several channels is nothing that TFX compiles for Kubeflow."""
    inputs = {
        keys.nth(key, candidate): ChannelParameter(type=output.type)
        for key, output in ModelSelectorSpec.OUTPUTS.items()
        for candidate in range(candidates)
    }
    return type(ModelSelectorSpec.__name__, (ModelSelectorSpec,), {"INPUTS": inputs, "__module__": __name__})


class ModelSelector(BaseComponent):
    """Chooses among candidates; `tfx_edge.pipelines.pareto` wires it behind as many edge stages.

    Outputs:
        model: a copy of the chosen edge model; where none is blessed, of the one that costs least.
        blessing: BLESSED exactly when the chosen model is.
        report: `selection.json`, a `SelectionReport`: every candidate's cost and metric, and which lie on the front.

    Example:
        selector = ModelSelector(
            models=[small.model, large.model],
            blessings=[small.blessing, large.blessing],
            reports=[small.report, large.report],
            config=SelectionConfig(objective="gzip_bytes"),
        )
    """

    SPEC_CLASS = ModelSelectorSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        models: Sequence[BaseChannel],
        blessings: Sequence[BaseChannel],
        reports: Sequence[BaseChannel],
        config: SelectionConfig | RuntimeParameter = SelectionConfig(),
    ) -> None:
        """Wires the component.

        Args:
            models: of TFLiteExporters.
            blessings: of the EdgeValidators that judged these models.
            reports: of the same.
            config: the objective, or a RuntimeParameter that holds it as JSON.

        Raises:
            EdgeError: no models, or not a blessing and a report for each.
        """
        if not len(models) == len(blessings) == len(reports) > 0:
            raise EdgeError(
                f"ModelSelector: {len(models)} models, {len(blessings)} blessings, {len(reports)} reports; give as many of each"
            )
        several = {keys.MODEL: models, keys.BLESSING: blessings, keys.REPORT: reports}
        super().__init__(
            _spec(len(models))(
                **{
                    **{keys.nth(key, n): channel for key, channels in several.items() for n, channel in enumerate(channels)},
                    keys.CONFIG: config.to_json() if isinstance(config, SelectionConfig) else config,
                    keys.MODEL: Channel(type=standard_artifacts.Model),
                    keys.BLESSING: Channel(type=standard_artifacts.ModelBlessing),
                    keys.REPORT: Channel(type=EdgeReport),
                }
            )
        )

"""What the components that change a Keras model's weights have in common: model and transformed examples in, model out."""

from typing import ClassVar

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.known_features import check_features_known
from tfx_edge.schemas import Config, EdgeError


class KerasSpec(ComponentSpec):
    """Inputs, outputs and properties of a `KerasComponent`."""

    PARAMETERS = {
        keys.CONFIG: ExecutionParameter(type=str),
        keys.MODEL_FN: ExecutionParameter(type=str, optional=True),
        keys.MODULE_PATH: ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        keys.FLOAT_MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.EXAMPLES: ChannelParameter(type=standard_artifacts.Examples),
        keys.TRANSFORM_GRAPH: ChannelParameter(type=standard_artifacts.TransformGraph, optional=True),
        keys.SCHEMA: ChannelParameter(type=standard_artifacts.Schema, optional=True),
    }
    OUTPUTS = {keys.MODEL: ChannelParameter(type=standard_artifacts.Model)}


class KerasComponent(BaseComponent):
    """The base; a subclass names its config and its executor.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel whose inputs are the transformed features, compiled as the input was,
            and beside it the technique's report.
    """

    SPEC_CLASS = KerasSpec
    CONFIG_CLASS: ClassVar[type[Config]]

    def __init__(
        self,
        model: BaseChannel,
        examples: BaseChannel,
        config: Config | RuntimeParameter,
        transform_graph: BaseChannel | None = None,
        schema: BaseChannel | None = None,
        model_fn: str | RuntimeParameter | None = None,
        module_path: str | RuntimeParameter | None = None,
    ) -> None:
        """Wires the component.

        Args:
            model: a float model, as a Trainer saves it.
            examples: as the model was trained on them: Transform's output, or where a pipeline has no Transform, ExampleGen's.
            config: a `CONFIG_CLASS`, or a RuntimeParameter that holds it as JSON.
            transform_graph: Transform's, for the schema of the transformed features.
            schema: of the examples, for a pipeline without Transform; `transform_graph` goes first where both are given.
            model_fn: import path of a function that builds the Keras model, for a model that was saved without Keras metadata
                (`tf.saved_model.save`, Keras 3).
            module_path: import path of a module whose functions replace a part of the training, see `tfx_edge.components.user_module`.

        Raises:
            EdgeError: neither `transform_graph` nor `schema` is given, or the config is another component's.
        """
        name = type(self).__name__
        check_features_known(name, transform_graph, schema)
        if not isinstance(config, (self.CONFIG_CLASS, RuntimeParameter)):
            raise EdgeError(f"{name}: config is a {type(config).__name__}; expected a {self.CONFIG_CLASS.__name__} or a RuntimeParameter")
        super().__init__(
            KerasSpec(
                **{
                    keys.FLOAT_MODEL: model,
                    keys.EXAMPLES: examples,
                    keys.TRANSFORM_GRAPH: transform_graph,
                    keys.SCHEMA: schema,
                    keys.CONFIG: config.to_json() if isinstance(config, Config) else config,
                    keys.MODEL_FN: model_fn,
                    keys.MODULE_PATH: module_path,
                    keys.MODEL: Channel(type=standard_artifacts.Model),
                }
            )
        )

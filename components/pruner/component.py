"""Pruner: makes a share of a model's weights zero, so that it compresses several times better, at next to no loss of accuracy.

The smallest weights of each selected layer are set to zero step by step while the model is trained a little further on the
transformed examples. That needs no user code: loss and metrics are those that the model was compiled with, unless the
config names a loss.
"""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.pruner.executor import Executor
from tfx_edge.schemas import EdgeError, PruningConfig


class PrunerSpec(ComponentSpec):
    """Inputs, outputs and properties of Pruner."""

    PARAMETERS = {
        keys.CONFIG: ExecutionParameter(type=str),
        keys.MODEL_FN: ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        keys.FLOAT_MODEL: ChannelParameter(type=standard_artifacts.Model),
        keys.EXAMPLES: ChannelParameter(type=standard_artifacts.Examples),
        keys.TRANSFORM_GRAPH: ChannelParameter(type=standard_artifacts.TransformGraph, optional=True),
        keys.SCHEMA: ChannelParameter(type=standard_artifacts.Schema, optional=True),
    }
    OUTPUTS = {keys.MODEL: ChannelParameter(type=standard_artifacts.Model)}


class Pruner(BaseComponent):
    """Magnitude pruning with fine-tuning, by layer name.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel whose inputs are the transformed features, compiled as the input was;
            `sparsity.json`, a `SparsityReport`: the zeros of each layer, and why a layer was left. Custom property `sparsity`.

    Example:
        pruner = Pruner(
            model=trainer.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=PruningConfig(
                target_sparsity=0.75,
                layers=("conv*", "dense*"),
                fine_tuning=FineTuningConfig(label_key="label", epochs=3),
            ),
        )
        quantizer = Quantizer(model=pruner.outputs["model"], ...)
    """

    SPEC_CLASS = PrunerSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        examples: BaseChannel,
        config: PruningConfig | RuntimeParameter,
        transform_graph: BaseChannel | None = None,
        schema: BaseChannel | None = None,
        model_fn: str | RuntimeParameter | None = None,
    ) -> None:
        """Wires the component.

        Args:
            model: a float model, as a Trainer saves it.
            examples: as the model was trained on them: Transform's output, or where a pipeline has no Transform, ExampleGen's.
            config: how sparse which layers become, and how they are fine-tuned, or a RuntimeParameter that holds it as JSON.
            transform_graph: Transform's, for the schema of the transformed features.
            schema: of the examples, for a pipeline without Transform; `transform_graph` goes first where both are given.
            model_fn: import path of a function that builds the Keras model, for a model that was saved without Keras metadata
                (`tf.saved_model.save`, Keras 3).

        Raises:
            EdgeError: neither `transform_graph` nor `schema` is given.
        """
        if transform_graph is None and schema is None:
            raise EdgeError(
                "Pruner: neither transform_graph nor schema is given, so the features of the examples are unknown; "
                "pass transform.outputs['transform_graph'], or without a Transform, the schema of the examples"
            )
        super().__init__(
            PrunerSpec(
                **{
                    keys.FLOAT_MODEL: model,
                    keys.EXAMPLES: examples,
                    keys.TRANSFORM_GRAPH: transform_graph,
                    keys.SCHEMA: schema,
                    keys.CONFIG: config.to_json() if isinstance(config, PruningConfig) else config,
                    keys.MODEL_FN: model_fn,
                    keys.MODEL: Channel(type=standard_artifacts.Model),
                }
            )
        )

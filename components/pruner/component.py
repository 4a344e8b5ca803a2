"""Pruner: makes a share of a model's weights zero, so that it compresses several times better, or takes whole filters out of it.

The smallest weights of each selected layer are set to zero step by step while the model is trained a little further on the
transformed examples. That needs no user code: loss and metrics are those that the model was compiled with, unless the
config names a loss.
"""

from tfx.dsl.components.base.executor_spec import ExecutorClassSpec

from tfx_edge.components.keras_component import KerasComponent
from tfx_edge.components.pruner.executor import Executor
from tfx_edge.schemas import PruningConfig


class Pruner(KerasComponent):
    """Magnitude pruning with fine-tuning, by layer name: single weights, blocks, m of n, or whole filters.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel whose inputs are the transformed features, compiled as the input was;
            `sparsity.json`, a `SparsityReport`: the zeros of each layer, and why a layer was left. Custom property `sparsity`.
            With granularity `Filters` the layers are smaller and `filters.json`, a `FilterReport`, says by how much. Custom
            property `parameters`.

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

    EXECUTOR_SPEC = ExecutorClassSpec(Executor)
    CONFIG_CLASS = PruningConfig

"""Clusterer: lets the weights of a layer share a few values, so that a quantized model compresses several times better.

The weights of each selected kernel are grouped by k-means, and the values that the groups share are then trained a little
further on the transformed examples, together with all other weights. That needs no user code: loss and metrics are those that
the model was compiled with, unless the config names a loss. Zeros that the Pruner made stay.
"""

from tfx.dsl.components.base.executor_spec import ExecutorClassSpec

from tfx_edge.components.clusterer.executor import Executor
from tfx_edge.components.keras_component import KerasComponent
from tfx_edge.schemas import ClusteringConfig


class Clusterer(KerasComponent):
    """Weight sharing with fine-tuning, by layer name.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel whose inputs are the transformed features, compiled as the input was;
            `clusters.json`, a `ClusteringReport`: distinct values and zeros of each layer before and after, and why a layer was
            left. Custom property `clusters`, the most values in any clustered kernel.

    Example:
        clusterer = Clusterer(
            model=pruner.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=ClusteringConfig(
                clusters={"conv*": 32, "*": 16},
                fine_tuning=FineTuningConfig(label_key="label", epochs=3),
            ),
        )
        quantizer = Quantizer(model=clusterer.outputs["model"], ...)
    """

    EXECUTOR_SPEC = ExecutorClassSpec(Executor)
    CONFIG_CLASS = ClusteringConfig

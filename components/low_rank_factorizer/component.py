"""LowRankFactorizer: replaces wide layers by two or three thin ones, so that the model has fewer weights and multiplications.

It pays on wide Dense layers and on convolutions between many channels, on any device and without a kernel for sparse weights.
Before Pruner, Clusterer and Quantizer, which then work on the factors.
"""

from tfx.dsl.components.base.executor_spec import ExecutorClassSpec

from tfx_edge.components.keras_component import KerasComponent
from tfx_edge.components.low_rank_factorizer.executor import Executor
from tfx_edge.schemas import LowRankConfig


class LowRankFactorizer(KerasComponent):
    """Truncated SVD, spatial or Tucker-2 factorization with fine-tuning, by layer name.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel whose inputs are the transformed features, compiled as the input was;
            `low_rank.json`, a `LowRankReport`: ranks, weights, multiplications and reconstruction error of each layer, and why a
            layer was left. Custom property `mac_share`: multiplications that remain.

    Example:
        factorizer = LowRankFactorizer(
            model=trainer.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=LowRankConfig(
                rank=MacBudget(share=0.5),
                fine_tuning=FineTuningConfig(label_key="label", epochs=3),
            ),
        )
        quantizer = Quantizer(model=factorizer.outputs["model"], ...)
    """

    EXECUTOR_SPEC = ExecutorClassSpec(Executor)
    CONFIG_CLASS = LowRankConfig

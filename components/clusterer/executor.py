"""Model and transformed examples in, clustered model out; the work is `tfx_edge.optimize.clustering.cluster`."""

from typing import Any

from absl import logging
from tfx.dsl.components.base.base_executor import BaseExecutor

from tfx_edge.components import keys
from tfx_edge.components.keras_step import Artifacts, run_step
from tfx_edge.components.observed import observed
from tfx_edge.optimize.clustering import cluster
from tfx_edge.schemas import ClusteringConfig

REPORT = "clusters.json"


class Executor(BaseExecutor):
    """Executes Clusterer."""

    @observed
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Clusters `float_model` while fine-tuning it on `examples`; see `run_step`."""
        config = ClusteringConfig.from_json(exec_properties[keys.CONFIG])
        output, report = run_step(
            input_dict,
            output_dict,
            exec_properties,
            lambda step: step.apply(cluster, config),
            REPORT,
        )
        clustered = [layer for layer in report.layers if layer.clusters is not None]
        output.set_int_custom_property("clusters", max(layer.values for layer in clustered))
        logging.info("Clustered %s.", ", ".join(f"{layer.layer} to {layer.values} values" for layer in clustered))

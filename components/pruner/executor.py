"""Model and transformed examples in, pruned model out; the work is `tfx_edge.optimize.pruning.prune`."""

from typing import Any

from absl import logging
from tfx.dsl.components.base.base_executor import BaseExecutor

from tfx_edge.components import keys
from tfx_edge.components.keras_step import Artifacts, run_step
from tfx_edge.components.observed import observed
from tfx_edge.optimize.pruning import prune
from tfx_edge.schemas import FilterReport, Filters, PruningConfig

SPARSITY, FILTERS = "sparsity.json", "filters.json"


class Executor(BaseExecutor):
    """Executes Pruner."""

    @observed
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Prunes `float_model` while fine-tuning it on `examples`; see `run_step`."""
        config = PruningConfig.from_json(exec_properties[keys.CONFIG])
        output, report = run_step(
            input_dict,
            output_dict,
            exec_properties,
            lambda step: step.apply(prune, config),
            FILTERS if isinstance(config.granularity, Filters) else SPARSITY,
        )
        names = ", ".join(x.layer for x in report.layers if x.pruned)
        if isinstance(report, FilterReport):
            output.set_int_custom_property("parameters", report.parameters_after)
            logging.info("Filters of %s left: %d parameters, were %d.", names, report.parameters_after, report.parameters_before)
        else:
            output.set_float_custom_property("sparsity", report.sparsity)
            logging.info("Pruned %s to a sparsity of %.3f.", names, report.sparsity)

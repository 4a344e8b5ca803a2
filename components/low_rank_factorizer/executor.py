"""Model and transformed examples in, factorized model out; the work is `tfx_edge.optimize.low_rank.factorize`."""

from typing import Any

from absl import logging
from tfx.dsl.components.base.base_executor import BaseExecutor

from tfx_edge.components import keys
from tfx_edge.components.keras_step import Artifacts, run_step
from tfx_edge.components.observed import observed
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.schemas import LowRankConfig

REPORT = "low_rank.json"


class Executor(BaseExecutor):
    """Executes LowRankFactorizer."""

    @observed
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Factorizes layers of `float_model` and fine-tunes it on `examples`; see `run_step`."""
        config = LowRankConfig.from_json(exec_properties[keys.CONFIG])
        output, report = run_step(
            input_dict,
            output_dict,
            exec_properties,
            lambda step: step.apply(factorize, config),
            REPORT,
        )
        output.set_float_custom_property("mac_share", report.macs_after / report.macs)
        logging.info("Factorized %s.", ", ".join(f"{x.layer} to rank {x.ranks}" for x in report.layers if x.ranks))

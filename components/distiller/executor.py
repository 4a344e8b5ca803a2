"""Model and transformed examples in, student out; the work is `tfx_edge.optimize.distillation.distill`."""

from typing import Any

from absl import logging
from tfx.dsl.components.base.base_executor import BaseExecutor

from tfx_edge.components import keys
from tfx_edge.components.keras_step import Artifacts, run_step
from tfx_edge.components.observed import observed
from tfx_edge.optimize.distillation import distill
from tfx_edge.schemas import DistillationConfig

REPORT = "distillation.json"


class Executor(BaseExecutor):
    """Executes Distiller."""

    @observed
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Teaches a student of `float_model` on `examples`; see `run_step`."""
        config = DistillationConfig.from_json(exec_properties[keys.CONFIG])
        output, report = run_step(
            input_dict,
            output_dict,
            exec_properties,
            lambda step: step.apply(distill, config, student_fn=step.module.student_fn),
            REPORT,
        )
        output.set_float_custom_property("parameter_share", report.student_parameters / report.teacher_parameters)
        logging.info("Distilled %d parameters into %d.", report.teacher_parameters, report.student_parameters)

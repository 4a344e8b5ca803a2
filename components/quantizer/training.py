"""Quantization-aware training: float model and transformed examples to a model that emulates int8, and its plan."""

import tempfile
from typing import Any

from tfx.types import artifact_utils
from tfx.utils import io_utils, path_utils

from tfx_edge.components import keys, plan_files
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.keras_step import PREPARATION, Artifacts, read_step, write_model
from tfx_edge.litert.plan import make_trained_plan
from tfx_edge.litert.ranges import EMPTY
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan

REPORT = "qat.json"


def train(input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any], config: QuantizationConfig) -> QuantizationPlan:
    """Trains, converts once as the exporter will, and writes model, report and plan.

    Args:
        input_dict: `float_model`, `examples`, and `transform_graph` or `schema`.
        output_dict: `model` gets the trained model and `qat.json`, `quantization_plan` the plan.
        exec_properties: `model_fn` and `module_path`, or None.
        config: with `qat`.

    Raises:
        EdgeError: the model can't be quantized or the examples don't fit; nothing is written then.
    """
    if config.qat is None or not input_dict.get(keys.EXAMPLES):
        raise EdgeError("Quantizer: qat needs examples to train on and there are none; give it Transform's transformed_examples")
    step = read_step(input_dict, exec_properties)
    model, report = step.apply(train_quantized, config.qat)
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
        write_model(scratch, model, {PREPARATION: step.preparation, REPORT: report})
        loaded = load_float_model(path_utils.serving_model_path(scratch))  # as the exporter will have it
        name = "the model after quantization-aware training"
        plan = make_trained_plan(convert_model(loaded, name), convert_model(loaded, name, quantized_io=config.io_type), config)
        io_utils.copy_dir(scratch, artifact_utils.get_single_uri(output_dict[keys.MODEL]))
    plan_files.write(artifact_utils.get_single_uri(output_dict[keys.QUANTIZATION_PLAN]), plan, EMPTY)
    return plan

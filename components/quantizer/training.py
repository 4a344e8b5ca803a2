"""Quantization-aware training: float model and transformed examples to a model that emulates int8, and its plan."""

import tempfile
from typing import Any

from tfx.types import artifact_utils
from tfx.utils import io_utils, path_utils

from tfx_edge.components import keys, plan_files
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.keras_step import PREPARATION, Artifacts, read_step, write_model
from tfx_edge.litert.plan import make_trained_plan
from tfx_edge.litert.planning import Planned
from tfx_edge.litert.search import Evaluator, SearchResult
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.optimize.traced_gradients import forgetting_gradients
from tfx_edge.schemas import AccuracyTarget, EdgeError, QuantizationConfig, QuantizationPlan, SearchTrial
from tfx_edge.schemas.schemes import IoType

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
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
        plan, _ = _train(input_dict, exec_properties, config, scratch)
        io_utils.copy_dir(scratch, artifact_utils.get_single_uri(output_dict[keys.MODEL]))
    plan_files.write(artifact_utils.get_single_uri(output_dict[keys.QUANTIZATION_PLAN]), Planned(plan))
    return plan


def train_to_target(
    input_dict: Artifacts, exec_properties: dict[str, Any], target: AccuracyTarget, found: SearchResult, evaluate: Evaluator, scratch: str
) -> tuple[Planned | None, SearchTrial]:
    """The last resort of a search that didn't meet its target: trains as the target allows.

    Args:
        input_dict: see `train`.
        exec_properties: see `train`.
        target: with `qat`.
        found: what the search found instead.
        evaluate: measures flatbuffers on the search's examples.
        scratch: local folder that gets the trained model and `qat.json`.

    Returns:
        The plan of the trained model, or None where it is no nearer to the target than what was found; and the trial.

    Raises:
        EdgeError: see `train`.
    """
    io: IoType = "int8" if found.config.io_type == "int8" else "float32"
    config = QuantizationConfig(scheme="int8", io_type=io, qat=target.qat, conversion=found.config.conversion)
    plan, flatbuffer = _train(input_dict, exec_properties, config, scratch)
    metric = evaluate(flatbuffer).metric
    drop = target.drop(found.float_metric, metric)
    met = target.keeps(found.float_metric, metric)
    trial = SearchTrial(step="qat", scheme="int8", metric=metric, drop=drop, size_bytes=len(flatbuffer), feasible=met)
    if found.metric is not None and not met and drop >= target.drop(found.float_metric, found.metric):
        return None, trial
    verdict = "which is within max_drop" if met else "nearer to it, but not within max_drop"
    decision = f"{found.reason}; quantization-aware training has {metric:.6g}, {verdict}"
    return Planned(plan.model_copy(update={"decision": decision, "warnings": () if met else (decision,)})), trial


@forgetting_gradients()
def _train(
    input_dict: Artifacts, exec_properties: dict[str, Any], config: QuantizationConfig, scratch: str
) -> tuple[QuantizationPlan, bytes]:
    """Trains, leaves model and report in a local folder, and gives the plan and the quantized flatbuffer."""
    if config.qat is None or not input_dict.get(keys.EXAMPLES):
        raise EdgeError("Quantizer: qat needs examples to train on and there are none; give it Transform's transformed_examples")
    from tfx_edge.optimize.qat import train_quantized  # with tfmot, which no other method needs

    step = read_step(input_dict, exec_properties)
    model, report = step.apply(train_quantized, config.qat)
    write_model(scratch, model, {PREPARATION: step.preparation, REPORT: report})
    loaded = load_float_model(path_utils.serving_model_path(scratch))  # as the exporter will have it
    name = "the model after quantization-aware training"
    floating = convert_model(loaded, name, config.conversion)
    flatbuffer = convert_model(loaded, name, config.conversion, config.io_type)
    return make_trained_plan(floating, flatbuffer, config), flatbuffer

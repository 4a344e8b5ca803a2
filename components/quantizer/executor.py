"""Float model and calibration data, or training examples, in; plan out."""

import tempfile
from typing import Any

import apache_beam as beam
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.calibration_data import Calibration, read_calibration
from tfx_edge.components.documents import read_bytes, write_bytes, write_document
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.keras_step import Artifacts
from tfx_edge.components.quantizer.preparation import prepare_model
from tfx_edge.components.quantizer.ranges import CollectRanges
from tfx_edge.components.quantizer.training import train
from tfx_edge.litert.plan import make_plan
from tfx_edge.litert.ranges import EMPTY
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan, TensorRanges

_COMPARED = 64  # examples on which a rewritten model is compared with the one that was given


class Executor(BaseBeamExecutor):
    """Executes Quantizer."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Plans the quantization of `float_model` from the ranges over `calibration_data`, and hands the model on; or trains it.

        Args:
            input_dict: `float_model`; `calibration_data` where the scheme needs it; `examples` for `qat`, with `transform_graph` or
                `schema`.
            output_dict: `quantization_plan` gets `plan.json` and `ranges.json`, `model` a copy of the float model, rewritten where
                layers of it block a device, or the trained model with `qat.json`.
            exec_properties: `config`, the JSON of a `QuantizationConfig`; `model_fn` and `module_path` for `qat`, or None.

        Raises:
            EdgeError: the model can't be converted or quantized, or the calibration data doesn't fit it; nothing is written then.
        """
        config = QuantizationConfig.from_json(exec_properties[keys.CONFIG])
        plan = (
            self._calibrate(input_dict, output_dict, config, exec_properties.get(keys.MODEL_FN))
            if config.qat is None
            else train(input_dict, output_dict, exec_properties, config)
        )
        output = artifact_utils.get_single_instance(output_dict[keys.QUANTIZATION_PLAN])
        plan_files.describe(output, plan)

    def _calibrate(
        self, input_dict: Artifacts, output_dict: Artifacts, config: QuantizationConfig, model_fn: str | None
    ) -> QuantizationPlan:
        """Post-training quantization."""
        model = artifact_utils.get_single_instance(input_dict[keys.FLOAT_MODEL])
        calibration = _calibration(input_dict) if config.needs_calibration else None
        loaded = float_models.load([model], input_dict.get(keys.TRANSFORM_GRAPH), model_fn)
        if calibration:
            calibration.check(loaded.signature)
        with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
            examples = next(calibration.batches(loaded.signature.input_names, _COMPARED), None) if calibration else None
            float_model, folder = prepare_model(loaded, model.uri, examples, scratch)
            flatbuffer = convert_model(float_model, f"the model at {model.uri}")
            ranges = self._collect(flatbuffer, calibration, config.batch_size) if calibration else EMPTY
            plan = make_plan(flatbuffer, config, ranges, calibration.digest if calibration else None)
            io_utils.copy_dir(folder, artifact_utils.get_single_uri(output_dict[keys.MODEL]))
        plan_files.write(artifact_utils.get_single_uri(output_dict[keys.QUANTIZATION_PLAN]), plan, ranges)
        return plan

    def _collect(self, flatbuffer: bytes, calibration: Calibration, batch_size: int) -> TensorRanges:
        scratch = self._get_tmp_dir().rstrip("/")
        model, result = f"{scratch}/float.tflite", f"{scratch}/ranges.json"
        write_bytes(model, flatbuffer)  # where Beam's workers reach it
        with clean_errors(), self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | CollectRanges(calibration.source, model, batch_size, calibration.name)
                | "Write" >> beam.Map(lambda ranges: write_document(result, ranges))
            )
        return TensorRanges.from_json(read_bytes(result))


def _calibration(input_dict: Artifacts) -> Calibration:
    calibration = read_calibration(input_dict.get(keys.CALIBRATION_DATA))
    if calibration is None:
        raise EdgeError("Quantizer: the scheme needs calibration_data and there is none; give it CalibrationGen's output")
    return calibration

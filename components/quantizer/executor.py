"""Float model and calibration data, or training examples, in; plan out."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam
from absl import logging
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.calibration_data import Calibration, read_calibration
from tfx_edge.components.documents import read_bytes, write_bytes
from tfx_edge.components.float_flatbuffers import convert_models
from tfx_edge.components.keras_step import Artifacts
from tfx_edge.components.observed import observed
from tfx_edge.components.quantizer.evaluation import held_out, make_evaluator
from tfx_edge.components.quantizer.preparation import prepare_model
from tfx_edge.components.quantizer.ranges import CollectStatistics
from tfx_edge.components.quantizer.training import train, train_to_target
from tfx_edge.litert.activation_statistics import Statistics, from_bytes, to_bytes
from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.inspect import digest
from tfx_edge.litert.planning import plan_quantization
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan

_COMPARED = 64  # examples on which a rewritten model is compared with the one that was given


class Executor(BaseBeamExecutor):
    """Executes Quantizer."""

    @observed
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
            self._calibrate(input_dict, output_dict, exec_properties, config)
            if config.qat is None
            else train(input_dict, output_dict, exec_properties, config)
        )
        output = artifact_utils.get_single_instance(output_dict[keys.QUANTIZATION_PLAN])
        plan_files.describe(output, plan)

    def _calibrate(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any], config: QuantizationConfig
    ) -> QuantizationPlan:
        """Post-training quantization; where that doesn't keep the accuracy and the target allows it, training."""
        model = artifact_utils.get_single_instance(input_dict[keys.FLOAT_MODEL])
        calibration = _calibration(input_dict, config) if config.uses_calibration else None
        signatures = config.conversion.signatures
        models = float_models.load_signatures([model], input_dict.get(keys.TRANSFORM_GRAPH), signatures, exec_properties.get(keys.MODEL_FN))
        name, loaded = next(iter(models.items()))  # the only one, where there are calibration data or a target
        inputs, target = loaded.signature.input_names, config.accuracy_target
        if calibration:
            calibration.check(loaded.signature)
        with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
            examples = calibration.first(inputs, _COMPARED) or None if calibration else None
            models[name], folder = prepare_model(loaded, model.uri, examples, scratch)
            flatbuffer = convert_models(models, f"the model at {model.uri}", config.conversion)
            candidates = self._candidates(flatbuffer, calibration, inputs, config)
            evaluate = make_evaluator(flatbuffer, held_out(input_dict, inputs, target), target) if target else None
            planned, found = plan_quantization(candidates, config, calibration.digest if calibration else None, evaluate)
            if found and evaluate and target and target.qat and not found.met:
                with_training = tempfile.mkdtemp(dir=scratch)
                trained, trial = train_to_target(input_dict, exec_properties, target, found, evaluate, with_training)
                planned, folder = (trained, with_training) if trained else (planned, folder)
                planned = replace(planned, plan=planned.plan.model_copy(update={"trials": (*found.trials, trial)}))
            for warning in planned.plan.warnings:
                logging.warning("Quantizer: %s", warning)
            io_utils.copy_dir(folder, artifact_utils.get_single_uri(output_dict[keys.MODEL]))
        plan_files.write(artifact_utils.get_single_uri(output_dict[keys.QUANTIZATION_PLAN]), planned)
        return planned.plan

    def _candidates(
        self, flatbuffer: bytes, calibration: Calibration | None, inputs: Sequence[str], config: QuantizationConfig
    ) -> Candidates:
        if calibration is None:
            return Candidates(flatbuffer)
        return Candidates(
            flatbuffer,
            lambda model: self._collect(model, calibration, config),
            lambda: calibration.first(inputs, config.examples_for_corrections),
        )

    def _collect(self, flatbuffer: bytes, calibration: Calibration, config: QuantizationConfig) -> tuple[Statistics, ...]:
        scratch = f"{self._get_tmp_dir().rstrip('/')}/{digest(flatbuffer)}"
        model, result = f"{scratch}/float.tflite", f"{scratch}/statistics.npz"
        write_bytes(model, flatbuffer)  # where Beam's workers reach it
        methods = config.ranges.methods | (config.accuracy_target.range_methods if config.accuracy_target else frozenset())
        with clean_errors(), self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | CollectStatistics(calibration.source, model, methods, config.batch_size, calibration.name)
                | "Write" >> beam.Map(lambda parts: write_bytes(result, to_bytes(parts)))
            )
        return from_bytes(read_bytes(result))


def _calibration(input_dict: Artifacts, config: QuantizationConfig) -> Calibration | None:
    calibration = read_calibration(input_dict.get(keys.CALIBRATION_DATA))
    if calibration is None and config.needs_calibration:
        raise EdgeError("Quantizer: the scheme needs calibration_data and there is none; give it CalibrationGen's output")
    return calibration

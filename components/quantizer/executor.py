"""Float model and calibration data, or training examples, in; plan out."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils
from tfx_bsl.tfxio import dataset_options, tensor_adapter, tf_example_record, tfxio

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.documents import read_bytes, write_bytes, write_document
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.keras_step import Artifacts
from tfx_edge.components.quantizer.preparation import prepare_model
from tfx_edge.components.quantizer.ranges import CollectRanges
from tfx_edge.components.quantizer.training import train
from tfx_edge.litert.plan import make_plan
from tfx_edge.litert.ranges import EMPTY
from tfx_edge.schemas import CalibrationSummary, EdgeError, QuantizationConfig, QuantizationPlan, Signature, TensorRanges

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
        output.set_string_custom_property("scheme", config.scheme)
        output.set_string_custom_property("method", plan.method)
        output.set_string_custom_property("float_model_digest", plan.float_model_digest)

    def _calibrate(
        self, input_dict: Artifacts, output_dict: Artifacts, config: QuantizationConfig, model_fn: str | None
    ) -> QuantizationPlan:
        """Post-training quantization."""
        model = artifact_utils.get_single_instance(input_dict[keys.FLOAT_MODEL])
        calibration = _calibration(input_dict.get(keys.CALIBRATION_DATA)) if config.needs_calibration else None
        loaded = float_models.load([model], input_dict.get(keys.TRANSFORM_GRAPH), model_fn)
        if calibration:
            calibration.check(loaded.signature)
        with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
            examples = calibration.examples(loaded.signature) if calibration else None
            float_model, folder = prepare_model(loaded, model.uri, examples, scratch)
            flatbuffer = convert_model(float_model, f"the model at {model.uri}")
            ranges = self._collect(flatbuffer, calibration, config.batch_size) if calibration else EMPTY
            plan = make_plan(flatbuffer, config, ranges, calibration.digest if calibration else None)
            io_utils.copy_dir(folder, artifact_utils.get_single_uri(output_dict[keys.MODEL]))
        plan_files.write(artifact_utils.get_single_uri(output_dict[keys.QUANTIZATION_PLAN]), plan, ranges)
        return plan

    def _collect(self, flatbuffer: bytes, calibration: "_Calibration", batch_size: int) -> TensorRanges:
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


@dataclass(frozen=True)
class _Calibration:
    name: str
    source: tfxio.TFXIO
    digest: str

    def check(self, signature: Signature) -> None:
        """Refuses data whose schema doesn't fit a model, before minutes go into converting it and reading the data."""
        specs = tensor_adapter.TensorAdapter(self.source.TensorAdapterConfig()).TypeSpecs()
        dense = {name: np.zeros((1, *spec.shape[1:])) for name, spec in specs.items() if isinstance(spec, tf.TensorSpec)}
        signature.feed(dense, self.name)

    def examples(self, signature: Signature) -> dict[str, NDArray[Any]]:
        """A few examples `[n, ...]` of a model's inputs."""
        options = dataset_options.TensorFlowDatasetOptions(batch_size=_COMPARED, num_epochs=1, shuffle=False)
        batch = next(iter(self.source.Project(sorted(signature.input_names)).TensorFlowDataset(options)))
        return {name: values.numpy() for name, values in batch.items()}


def _calibration(artifacts: Sequence[Artifact] | None) -> _Calibration:
    if not artifacts:
        raise EdgeError("Quantizer: the scheme needs calibration_data and there is none; give it CalibrationGen's output")
    uri = artifact_utils.get_single_uri(list(artifacts))
    schema = text_format.Parse(read_bytes(f"{uri}/schema.pbtxt"), schema_pb2.Schema())
    return _Calibration(
        name=f"the calibration data at {uri}",
        source=tf_example_record.TFExampleRecord(f"{uri}/Split-calibration/*.gz", telemetry_descriptors=["tfx_edge"], schema=schema),
        digest=CalibrationSummary.from_json(read_bytes(f"{uri}/calibration.json")).digest,
    )

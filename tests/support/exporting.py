"""Quantizer and TFLiteExporter on artifacts built by hand, without a pipeline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras
from example_shards import example, schema, write_shards
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types.standard_artifacts import Model

from tfx_edge.components import keys
from tfx_edge.components.quantizer.executor import Executor as Quantizer
from tfx_edge.components.tflite_exporter.executor import Executor as Exporter
from tfx_edge.schemas import CalibrationConfig, CalibrationSummary, ExportConfig, QuantizationConfig
from tfx_edge.schemas.artifact_types import CalibrationData, QuantizationPlan

SCALARS = ("length", "depth", "mass", "year")
SCHEMA = schema(species=("INT",), **dict.fromkeys(SCALARS, ("FLOAT",)))
BEAM_ARGS = ("--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=1")


def values(count: int = 300) -> dict[str, np.ndarray[Any, Any]]:
    """Four scalar features of very different ranges, sorted by the first, as files often are."""
    drawn = np.random.default_rng(1).normal(size=(count, 4)) * [3, 0.5, 1, 2] + [0, -1, 2, 0]
    drawn = drawn[np.argsort(drawn[:, 0])].astype(np.float32)
    return {name: drawn[:, i] for i, name in enumerate(SCALARS)}


def records(features: dict[str, np.ndarray[Any, Any]]) -> list[bytes]:
    rows = zip(*features.values(), strict=True)
    return [example({"species": [i % 3], **{n: [float(v)] for n, v in zip(features, row, strict=True)}}) for i, row in enumerate(rows)]


def keras_model(seed: int = 4) -> tf_keras.Model:
    """As TFX's penguin example: an input `[n, 1]` a feature."""
    tf_keras.utils.set_random_seed(seed)
    inputs = [tf_keras.Input((1,), name=name) for name in SCALARS]
    x = tf_keras.layers.concatenate(inputs)
    for _ in range(2):
        x = tf_keras.layers.Dense(16, activation="relu")(x)
    return tf_keras.Model(inputs, tf_keras.layers.Dense(3, name="logits")(x))


def model_artifact(folder: Path, model: tf_keras.Model) -> Model:
    """A Model artifact as a Trainer writes it, with a file beside the SavedModel, as Pruner leaves one."""
    model.save(folder / "Format-Serving", save_format="tf")
    (folder / "sparsity.json").write_text("{}")
    artifact = Model()
    artifact.uri = str(folder)
    return artifact


def calibration_artifact(folder: Path, shards: Sequence[Sequence[bytes]], features: schema_pb2.Schema = SCHEMA) -> CalibrationData:
    """A CalibrationData artifact with the records in these files."""
    write_shards(folder / "Split-calibration", shards)
    (folder / "schema.pbtxt").write_text(text_format.MessageToString(features))
    count = max(1, sum(map(len, shards)))
    summary = CalibrationSummary(config=CalibrationConfig(num_examples=count), count=count, population=count, features={}, digest="5a" * 32)
    (folder / "calibration.json").write_text(summary.to_json())
    artifact = CalibrationData()
    artifact.uri = str(folder)
    return artifact


def run_quantizer(
    folder: Path, model: Model, calibration: CalibrationData | None, config: QuantizationConfig, beam_args: Sequence[str] = BEAM_ARGS
) -> tuple[Model, QuantizationPlan]:
    """Runs Quantizer's executor; the outputs are in `folder`."""
    outputs = Model(), QuantizationPlan()
    for output, name in zip(outputs, ("model", "plan"), strict=True):
        output.uri = str(folder / name)
        Path(output.uri).mkdir(parents=True)  # as TFX does
    inputs: dict[str, Any] = {keys.FLOAT_MODEL: [model]}
    if calibration is not None:
        inputs[keys.CALIBRATION_DATA] = [calibration]
    context = BaseBeamExecutor.Context(beam_pipeline_args=list(beam_args), tmp_dir=str(folder / "tmp"), unique_id="1")
    Quantizer(context).Do(inputs, {keys.MODEL: [outputs[0]], keys.QUANTIZATION_PLAN: [outputs[1]]}, {keys.CONFIG: config.to_json()})
    return outputs


def run_exporter(folder: Path, model: Model, plan: QuantizationPlan | None = None, config: ExportConfig = ExportConfig()) -> Model:
    """Runs TFLiteExporter's executor; the output is `folder`."""
    output = Model()
    output.uri = str(folder)
    folder.mkdir(parents=True)
    inputs: dict[str, Any] = {keys.FLOAT_MODEL: [model]}
    if plan is not None:
        inputs[keys.QUANTIZATION_PLAN] = [plan]
    Exporter().Do(inputs, {keys.MODEL: [output]}, {keys.CONFIG: config.to_json()})
    return output


def files(folder: str | Path) -> dict[str, bytes]:
    """Contents by path of all files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}

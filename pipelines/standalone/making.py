"""A bundle out of a float SavedModel and examples in files: CalibrationGen, Quantizer and TFLiteExporter."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.executor import Executor as CalibrationGen
from tfx_edge.components.float_models import load_signatures
from tfx_edge.components.quantizer.executor import Executor as Quantizer
from tfx_edge.components.tflite_exporter.executor import Executor as TFLiteExporter
from tfx_edge.pipelines.standalone.artifacts import artifact, context, examples_artifact, saved_model_artifact, schema_artifact
from tfx_edge.pipelines.standalone.schema import infer_schema
from tfx_edge.schemas import CalibrationConfig, EdgeError, ExportConfig, Manifest, QuantizationConfig
from tfx_edge.schemas.artifact_types import CalibrationData, QuantizationPlan

TRAIN = "train"


def quantize(
    saved_model: Path,
    examples: Sequence[Path],
    output: Path,
    *,
    quantization: QuantizationConfig = QuantizationConfig(),
    calibration: CalibrationConfig = CalibrationConfig(),
    export: ExportConfig = ExportConfig(),
    held_out: Sequence[Path] = (),
) -> Manifest:
    """Makes an edge model as a pipeline's stage does, without the techniques that train.

    Args:
        saved_model: a SavedModel that can be called on features by name.
        examples: TFRecord files of tf.Examples with the model's inputs, for activation ranges.
        output: folder of the bundle; it appears whole or not at all.
        quantization: the scheme, and perhaps an accuracy target.
        calibration: how many examples, and which.
        export: what the manifest says.
        held_out: files that an accuracy target measures candidates on, as its `split`.

    Returns:
        The bundle's manifest.

    Raises:
        EdgeError: a file isn't what it should be, the output is there already, the model can't be converted or quantized, or the examples
            don't fit it.
    """
    if output.exists():
        raise EdgeError(f"{output}: is there already; remove it or name another folder")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as scratch:
        folder = Path(scratch)
        model = saved_model_artifact(saved_model, folder / "float")
        [float_model] = load_signatures([model], None, ()).values()
        shapes = {spec.name: tuple(size or 0 for size in spec.shape[1:]) for spec in float_model.signature.inputs}
        target = quantization.accuracy_target
        splits = {TRAIN: examples} | ({target.split: held_out} if target is not None else {})
        schema = schema_artifact(infer_schema([*examples, *held_out], shapes), folder / "schema")
        artifacts = examples_artifact(splits, folder / "examples")
        inputs = {keys.FLOAT_MODEL: [model], keys.SCHEMA: [schema]}
        if quantization.uses_calibration:
            data = artifact(CalibrationData, folder / "calibration")
            config = calibration.model_copy(update={"split": TRAIN, "held_out": (target.split,) if target is not None else ()})
            given = {keys.EXAMPLES: [artifacts], keys.SCHEMA: [schema]}
            CalibrationGen(context(folder / "tmp")).Do(given, {keys.CALIBRATION_DATA: [data]}, {keys.CONFIG: config.to_json()})
            inputs[keys.CALIBRATION_DATA] = [data]
        if target is not None:
            inputs[keys.EXAMPLES] = [artifacts]
        quantized = artifact(standard_artifacts.Model, folder / "quantized")
        plan = artifact(QuantizationPlan, folder / "plan")
        outputs = {keys.MODEL: [quantized], keys.QUANTIZATION_PLAN: [plan]}
        Quantizer(context(folder / "tmp")).Do(inputs, outputs, {keys.CONFIG: quantization.to_json()})
        bundle = artifact(standard_artifacts.Model, folder / "bundle")
        given = {keys.FLOAT_MODEL: [quantized], keys.QUANTIZATION_PLAN: [plan]}
        TFLiteExporter(context(folder / "tmp")).Do(given, {keys.MODEL: [bundle]}, {keys.CONFIG: export.to_json()})
        shutil.copytree(plan.uri, folder / "bundle" / "plan")
        (folder / "bundle").rename(output)
    return Manifest.from_json((output / "edge" / "manifest.json").read_bytes())

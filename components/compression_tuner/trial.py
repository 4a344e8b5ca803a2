"""One trial: a float model and techniques to a trained model, its quantization plan and the flatbuffer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tf_keras
from google.protobuf import text_format
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils
from tfx_bsl.tfxio import dataset_options, tf_example_record

from tfx_edge.components import plan_files
from tfx_edge.components.clusterer.executor import REPORT as CLUSTERS
from tfx_edge.components.distiller.executor import REPORT as DISTILLATION
from tfx_edge.components.documents import read_bytes
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.keras_step import PREPARATION, StepInput, write_model
from tfx_edge.components.low_rank_factorizer.executor import REPORT as LOW_RANK
from tfx_edge.components.pruner.executor import FILTERS, SPARSITY
from tfx_edge.components.quantizer.training import REPORT as QAT
from tfx_edge.litert.plan import apply_plan, make_plan, make_trained_plan
from tfx_edge.litert.ranges import EMPTY, RangeCollector, merge
from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.distillation import distill
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    CalibrationSummary,
    Config,
    EdgeError,
    FilterReport,
    QuantizationConfig,
    Techniques,
    TensorRanges,
)

MODEL, PLAN = "model", "plan"  # folders that a trial leaves: what Model and QuantizationPlan artifacts hold
_NAME = "the trial's model"


@dataclass(frozen=True)
class Calibration:
    """CalibrationData to collect ranges from.

    Attributes:
        uri: of the artifact.
        digest: of its data.
    """

    uri: str
    digest: str

    def ranges(self, floating: bytes, inputs: list[str], batch_size: int) -> TensorRanges:
        """The range of every activation, as Quantizer collects it."""
        collect = RangeCollector(floating)
        name = f"the calibration data at {self.uri}"
        return merge(collect(batch, name) for batch in self._batches(inputs, batch_size))

    def _batches(self, inputs: list[str], batch_size: int) -> Iterator[dict[str, NDArray[Any]]]:
        schema = text_format.Parse(read_bytes(f"{self.uri}/schema.pbtxt"), schema_pb2.Schema())
        source = tf_example_record.TFExampleRecord(
            f"{self.uri}/Split-calibration/*.gz", telemetry_descriptors=["tfx_edge"], schema=schema
        ).Project(inputs)
        options = dataset_options.TensorFlowDatasetOptions(batch_size=batch_size, num_epochs=1, shuffle=False)
        yield from source.TensorFlowDataset(options).as_numpy_iterator()


def read_calibration(artifacts: list[Artifact]) -> Calibration | None:
    """The calibration data of an input channel, if there is any."""
    if not artifacts:
        return None
    uri = artifact_utils.get_single_uri(artifacts)
    return Calibration(uri, CalibrationSummary.from_json(read_bytes(f"{uri}/calibration.json")).digest)


def compress(step: StepInput, techniques: Techniques, seed: int) -> tuple[tf_keras.Model, dict[str, Config]]:
    """The steps on the Keras side, in the order of an edge stage.

    Args:
        step: the float model and its data; the model stays as it is.
        techniques: the steps.
        seed: of Python, NumPy and TensorFlow, so that no trial depends on those before.

    Returns:
        The model, and the reports by their file names.

    Raises:
        EdgeError: a step can't be done with this model.
    """
    tf_keras.utils.set_random_seed(seed)
    model = step.model
    reports: dict[str, Config] = {PREPARATION: step.preparation}
    if (distillation := techniques.distillation) is not None:
        tuning = distillation.fine_tuning
        model, reports[DISTILLATION] = distill(
            model, step.training(tuning), distillation, student_fn=step.module.student_fn, validation=step.validation(tuning)
        )
    if (low_rank := techniques.low_rank) is not None:
        tuning = low_rank.fine_tuning
        model, reports[LOW_RANK] = factorize(model, step.training(tuning), low_rank, validation=step.validation(tuning))
    if (pruning := techniques.pruning) is not None:
        tuning = pruning.fine_tuning
        model, pruned = prune(model, step.training(tuning), pruning, validation=step.validation(tuning))
        reports[FILTERS if isinstance(pruned, FilterReport) else SPARSITY] = pruned
    if (clustering := techniques.clustering) is not None:
        tuning = clustering.fine_tuning
        model, reports[CLUSTERS] = cluster(model, step.training(tuning), clustering, validation=step.validation(tuning))
    if (qat := techniques.quantization.qat) is not None:
        tuning = qat.fine_tuning
        model, reports[QAT] = train_quantized(model, step.training(tuning), qat, validation=step.validation(tuning))
    return model, reports


def build(step: StepInput, techniques: Techniques, calibration: Calibration | None, seed: int, folder: str) -> bytes:
    """Trains, saves, converts and quantizes, as the components of an edge stage do one after the other.

    Args:
        step: see `compress`.
        techniques: see `compress`.
        calibration: where the scheme needs ranges.
        seed: see `compress`.
        folder: local; gets `model/` and `plan/`, from which TFLiteExporter makes the same flatbuffer.

    Raises:
        EdgeError: a step can't be done, the model can't be converted, or the scheme needs calibration data.
    """
    model, reports = compress(step, techniques, seed)
    write_model(f"{folder}/{MODEL}", model, reports)
    loaded = load_float_model(path_utils.serving_model_path(f"{folder}/{MODEL}"))  # as the exporter will have it
    floating, config, ranges = convert_model(loaded, _NAME), techniques.quantization, EMPTY
    if config.qat is not None:
        flatbuffer = convert_model(loaded, _NAME, quantized_io=config.io_type)
        plan = make_trained_plan(floating, flatbuffer, config)
    else:
        if config.needs_calibration:
            ranges = _ranges(calibration, floating, list(loaded.signature.input_names), config)
        plan = make_plan(floating, config, ranges, calibration.digest if calibration else None)
        flatbuffer = apply_plan(floating, plan, ranges)
    plan_files.write(f"{folder}/{PLAN}", plan, ranges)
    return flatbuffer


def _ranges(calibration: Calibration | None, floating: bytes, inputs: list[str], config: QuantizationConfig) -> TensorRanges:
    if calibration is None:
        raise EdgeError(f"scheme {config.scheme!r} without calibration_data; give CompressionTuner CalibrationGen's output")
    return calibration.ranges(floating, inputs, config.batch_size)

"""One trial: a float model and techniques to a trained model, its quantization plan and the flatbuffer."""

from dataclasses import replace

import tf_keras
from tfx.utils import path_utils

from tfx_edge.components import plan_files
from tfx_edge.components.calibration_data import Calibration
from tfx_edge.components.clusterer.executor import REPORT as CLUSTERS
from tfx_edge.components.distiller.executor import REPORT as DISTILLATION
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.components.keras_step import PREPARATION, StepInput, write_model
from tfx_edge.components.low_rank_factorizer.executor import REPORT as LOW_RANK
from tfx_edge.components.pruner.executor import FILTERS, SPARSITY
from tfx_edge.components.quantizer.training import REPORT as QAT
from tfx_edge.litert.activation_statistics import Statistics
from tfx_edge.litert.candidates import Candidates
from tfx_edge.litert.collector import Collector
from tfx_edge.litert.plan import make_trained_plan
from tfx_edge.litert.planning import Planned, carry_out, plan_quantization
from tfx_edge.optimize.clustering import cluster
from tfx_edge.optimize.distillation import distill
from tfx_edge.optimize.float_model import load_float_model
from tfx_edge.optimize.low_rank import factorize
from tfx_edge.optimize.pruning import prune
from tfx_edge.optimize.qat import train_quantized
from tfx_edge.schemas import (
    ClusteringReport,
    Config,
    DistillationReport,
    EdgeError,
    FilterReport,
    LowRankReport,
    QatReport,
    QuantizationConfig,
    SparsityReport,
    Techniques,
)

MODEL, PLAN = "model", "plan"  # folders that a trial leaves: what Model and QuantizationPlan artifacts hold
_NAME = "the trial's model"


_FILES: dict[type[Config], str] = {
    DistillationReport: DISTILLATION,
    LowRankReport: LOW_RANK,
    SparsityReport: SPARSITY,
    FilterReport: FILTERS,
    ClusteringReport: CLUSTERS,
    QatReport: QAT,
}


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
    reports: dict[str, Config] = {PREPARATION: step.preparation}
    for technique, config, arguments in (
        (distill, techniques.distillation, {"student_fn": step.module.student_fn}),
        (factorize, techniques.low_rank, {}),
        (prune, techniques.pruning, {}),
        (cluster, techniques.clustering, {}),
        (train_quantized, techniques.quantization.qat, {}),
    ):
        if config is not None:
            model, report = step.apply(technique, config, **arguments)
            step, reports[_FILES[type(report)]] = replace(step, model=model), report
    return step.model, reports


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
    config = techniques.quantization
    floating = convert_model(loaded, _NAME, config.conversion)
    if config.qat is not None:
        flatbuffer = convert_model(loaded, _NAME, config.conversion, config.io_type)
        planned = Planned(make_trained_plan(floating, flatbuffer, config))
    else:
        candidates = _candidates(calibration, floating, list(loaded.signature.input_names), config)
        planned, _ = plan_quantization(candidates, config, calibration.digest if calibration else None)
        flatbuffer = carry_out(floating, planned)
    plan_files.write(f"{folder}/{PLAN}", planned)
    return flatbuffer


def _candidates(calibration: Calibration | None, floating: bytes, inputs: list[str], config: QuantizationConfig) -> Candidates:
    if not config.needs_calibration:
        return Candidates(floating)
    if calibration is None:
        raise EdgeError(f"scheme {config.scheme!r} without calibration_data; give CompressionTuner CalibrationGen's output")

    def collect(model: bytes) -> tuple[Statistics, ...]:
        collector = Collector(model, config.ranges.methods, batch_size=config.batch_size)
        for batch in calibration.batches(inputs, config.batch_size):
            collector.add(batch, calibration.name)
        return collector.finish(calibration.name)

    return Candidates(floating, collect, lambda: calibration.first(inputs, config.examples_for_corrections))

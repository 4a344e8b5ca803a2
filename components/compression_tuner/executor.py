"""Float model and data in; the best edge model's parts and the table of all trials out."""

import tempfile
from typing import Any

from absl import logging
from tfx.components.tuner.executor import write_best_hyperparameters
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from tfx_edge.components import keys, plan_files
from tfx_edge.components.calibration_data import read_calibration
from tfx_edge.components.compression_tuner.objective import Yardstick
from tfx_edge.components.compression_tuner.search import Found, search
from tfx_edge.components.compression_tuner.space import describe
from tfx_edge.components.compression_tuner.trial import MODEL, PLAN, build
from tfx_edge.components.compression_tuner.trial_store import open_store
from tfx_edge.components.documents import write_document
from tfx_edge.components.keras_metrics import make_metric, output_name
from tfx_edge.components.keras_step import Artifacts, read_step
from tfx_edge.components.observed import observed
from tfx_edge.litert.inspect import digest
from tfx_edge.optimize.traced_gradients import forgetting_gradients
from tfx_edge.schemas import QuantizationConfig, SearchConfig, Techniques, TrialResult

SEARCH, TECHNIQUES = "search.json", "techniques.json"
_NOTHING = Techniques(quantization=QuantizationConfig(scheme="float32"))


class Executor(BaseExecutor):
    """Executes CompressionTuner."""

    @observed
    @forgetting_gradients()
    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:
        """Searches, and writes what the best trial made.

        Args:
            input_dict: `float_model`, `examples`, `transform_graph` or `schema`, and `calibration_data` where a scheme needs it.
            output_dict: `model`, `quantization_plan`, `best_hyperparameters`, `tuner_results` and `report`.
            exec_properties: `config`, the JSON of a `SearchConfig`; `model_fn` and `module_path`, or None.

        Raises:
            EdgeError: the input doesn't allow it, or no trial keeps within the budget; nothing is written then.
        """
        config = SearchConfig.from_json(exec_properties[keys.CONFIG])
        step = read_step(input_dict, exec_properties)
        calibration = read_calibration(input_dict.get(keys.CALIBRATION_DATA, []))
        make_metric(config.threshold)
        output_name(step.model.output_names, config.threshold)
        measured = step.dataset(config.split, config.label_key).take(-1 if config.examples is None else config.examples)
        with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
            floating = build(step, _NOTHING, None, config.seed, scratch)
        yardstick = Yardstick(config, measured, floating)
        reference = yardstick.measure(floating)
        inputs = {
            "model": digest(floating),
            "calibration": calibration.digest if calibration else None,
            "module": exec_properties.get(keys.MODULE_PATH),
        }

        def make(techniques: Techniques, folder: str) -> TrialResult:
            return yardstick.measure(build(step, techniques, calibration, config.seed, folder))

        with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:
            store = open_store(config.trials_dir or scratch, config, reference, inputs)
            found = search(config, reference, make, store)
            _write(found, output_dict)


def _write(found: Found, output_dict: Artifacts) -> None:
    plan_artifact = artifact_utils.get_single_instance(output_dict[keys.QUANTIZATION_PLAN])
    io_utils.copy_dir(f"{found.kept}/{MODEL}", artifact_utils.get_single_uri(output_dict[keys.MODEL]))
    io_utils.copy_dir(f"{found.kept}/{PLAN}", plan_artifact.uri)
    planned, _ = plan_files.read(plan_artifact.uri)
    plan_files.describe(plan_artifact, planned.plan)
    write_best_hyperparameters(found.tuner, output_dict)
    report = artifact_utils.get_single_uri(output_dict[keys.REPORT])
    write_document(f"{report}/{TECHNIQUES}", found.techniques)
    write_document(f"{report}/{SEARCH}", found.report)
    best = next(trial for trial in found.report.trials if trial.values == found.report.best)
    logging.info("Best of %d trials: %s.", len(found.report.trials), describe(best))

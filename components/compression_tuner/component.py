"""CompressionTuner: searches how far a model can be compressed before it loses more than it may.

TFX's Tuner takes a trained model too (`base_model`), but hands on hyperparameters alone, which a pipeline knows only while it
runs, when its components are wired and their configs written; it reads splits as a Trainer does, and keeps its trials where a
second run doesn't look. So this is a component of its own with KerasTuner's oracles inside and the Tuner's two outputs, file by
file as the Tuner writes them, and with the best trial's model and quantization plan, which go on in the same pipeline.
"""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec

from tfx_edge.components import keys
from tfx_edge.components.compression_tuner.executor import Executor
from tfx_edge.components.keras_component import KerasSpec
from tfx_edge.components.keras_metrics import make_metric
from tfx_edge.components.known_features import check_features_known
from tfx_edge.schemas import EdgeError, SearchConfig
from tfx_edge.schemas.artifact_types import CalibrationData, EdgeReport, QuantizationPlan

_OUTPUTS = {
    keys.MODEL: standard_artifacts.Model,
    keys.QUANTIZATION_PLAN: QuantizationPlan,
    keys.BEST_HYPERPARAMETERS: standard_artifacts.HyperParameters,
    keys.TUNER_RESULTS: standard_artifacts.TunerResults,
    keys.REPORT: EdgeReport,
}


class CompressionTunerSpec(ComponentSpec):
    """Inputs, outputs and properties of CompressionTuner."""

    PARAMETERS = KerasSpec.PARAMETERS
    INPUTS = {**KerasSpec.INPUTS, keys.CALIBRATION_DATA: ChannelParameter(type=CalibrationData, optional=True)}
    OUTPUTS = {key: ChannelParameter(type=kind) for key, kind in _OUTPUTS.items()}


class CompressionTuner(BaseComponent):
    """Searches sparsity, clusters, rank, width, learning rates, scheme: any fields of `Techniques`.

    A trial does what an edge stage does up to the flatbuffer: distil, factorize, prune, cluster, quantize. It is feasible if the
    flatbuffer's metric on `config.split` is within `max_drop` of the float model's; the feasible one with the least of the
    objective wins. A trial that can't be done is a row of the report with its error. The gate still judges the winner.

    Outputs:
        model: the best trial's, as Quantizer hands it on: `Format-Serving/` and each technique's report.
        quantization_plan: the best trial's, `plan.json` and `ranges.json`.
        best_hyperparameters: `best_hyperparameters.txt`, as TFX's Tuner writes it: the best trial's values by path.
        tuner_results: `tuner_results.json`, as TFX's Tuner writes it: the trials that were measured, the best first.
        report: `search.json`, a `SearchReport` with a row for every trial; `techniques.json`, the best as `Techniques`, for a
            stage that does the same without a search.

    Example:
        tuning = FineTuningConfig(label_key="label", epochs=5)
        tuner = CompressionTuner(
            model=trainer.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            calibration_data=calibration_gen.outputs["calibration_data"],
            config=SearchConfig(
                techniques=Techniques(
                    pruning=PruningConfig(fine_tuning=tuning),
                    clustering=ClusteringConfig(fine_tuning=tuning),
                ),
                space={
                    "pruning.target_sparsity": Between(low=0.5, high=0.9),
                    "clustering.clusters.*": OneOf(values=(8, 16, 32)),
                    "pruning.fine_tuning.learning_rate": Between(low=1e-4, high=1e-2, log=True),
                },
                optional=("clustering",),
                label_key="label",
                threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01),
                max_trials=20,
                trials_dir="/models/searches",
            ),
        )
        exporter = TFLiteExporter(
            model=tuner.outputs["model"],
            quantization_plan=tuner.outputs["quantization_plan"],
            transform_graph=transform.outputs["transform_graph"],
        )
    """

    SPEC_CLASS = CompressionTunerSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        examples: BaseChannel,
        config: SearchConfig | RuntimeParameter,
        transform_graph: BaseChannel | None = None,
        schema: BaseChannel | None = None,
        calibration_data: BaseChannel | None = None,
        model_fn: str | RuntimeParameter | None = None,
        module_path: str | RuntimeParameter | None = None,
    ) -> None:
        """Wires the component.

        Args:
            model: the float model, as a Trainer saves it; it is also what trials are compared with.
            examples: transformed, as the model was trained on them; with the split that the metric is measured on.
            config: the search, or a RuntimeParameter that holds it as JSON.
            transform_graph: Transform's, for the schema of the transformed features.
            schema: of the examples, for a pipeline without Transform.
            calibration_data: of CalibrationGen; needed where a trial's scheme may be `int8` without `qat`.
            model_fn: see `KerasComponent`.
            module_path: see `KerasComponent`.

        Raises:
            EdgeError: neither transform_graph nor schema is given, calibration_data is missing, or Keras has no such metric.
        """
        check_features_known("CompressionTuner", transform_graph, schema)
        if not isinstance(config, (SearchConfig, RuntimeParameter)):
            raise EdgeError(f"CompressionTuner: config is a {type(config).__name__}; expected a SearchConfig or a RuntimeParameter")
        if isinstance(config, SearchConfig):
            make_metric(config.threshold)
            if config.may_calibrate and calibration_data is None:
                raise EdgeError(
                    "CompressionTuner: a trial may have scheme 'int8' after training and there is no calibration_data; give it "
                    "CalibrationGen's output, or leave int8 out"
                )
        inputs = {
            keys.FLOAT_MODEL: model,
            keys.EXAMPLES: examples,
            keys.TRANSFORM_GRAPH: transform_graph,
            keys.SCHEMA: schema,
            keys.CALIBRATION_DATA: calibration_data,
        }
        properties = {
            keys.CONFIG: config.to_json() if isinstance(config, SearchConfig) else config,
            keys.MODEL_FN: model_fn,
            keys.MODULE_PATH: module_path,
        }
        outputs = {key: Channel(type=kind) for key, kind in _OUTPUTS.items()}
        super().__init__(CompressionTunerSpec(**inputs, **properties, **outputs))

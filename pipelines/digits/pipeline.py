"""From digits to a blessed int8 model: standard TFX up to the Trainer, then one call."""

from pathlib import Path

from tfx.components.example_gen.import_example_gen.component import ImportExampleGen
from tfx.components.example_validator.component import ExampleValidator
from tfx.components.pusher.component import Pusher
from tfx.components.schema_gen.component import SchemaGen
from tfx.components.statistics_gen.component import StatisticsGen
from tfx.components.trainer.component import Trainer
from tfx.components.transform.component import Transform
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import example_gen_pb2, pusher_pb2, trainer_pb2

from tfx_edge.pipelines.beam_args import IN_MEMORY
from tfx_edge.pipelines.digits.data import SPLITS
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.schemas import Budget, CalibrationConfig, FineTuningConfig, GateConfig, PruningConfig, QuantizationConfig, Slice, Threshold

USER_CODE = "tfx_edge.pipelines.digits.user_code"
LABEL = "label"

PRUNING = PruningConfig(target_sparsity=0.5, fine_tuning=FineTuningConfig(label_key=LABEL, epochs=8))
CALIBRATION = CalibrationConfig(strategy="stratified", stratify_by=LABEL, num_examples=200)
QUANTIZATION = QuantizationConfig(scheme="int8")
GATE = GateConfig(
    label_key=LABEL,
    budget=Budget(min_gzip_ratio=6),
    thresholds=(
        Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01, lower_bound=0.95),
        # 60 images a digit: one of them is 1.7 percentage points
        Threshold(metric="SparseCategoricalAccuracy", max_drop=0.05, slices=(Slice(feature_keys=(LABEL,)),)),
    ),
)


def create_pipeline(
    root: str,
    data: str,
    *,
    name: str = "digits",
    epochs: int = 20,
    pruning: PruningConfig = PRUNING,
    calibration: CalibrationConfig = CALIBRATION,
    quantization: QuantizationConfig = QUANTIZATION,
    gate: GateConfig = GATE,
    enable_cache: bool = True,
) -> Pipeline:
    """Builds the pipeline for `LocalDagRunner`.

    Args:
        root: folder for `metadata.db`, the artifacts and `pushed/`.
        data: folder that `digits.data.write_examples` wrote.
        name: of the pipeline in the metadata.
        epochs: of the Trainer.
        pruning: Pruner's config.
        calibration: CalibrationGen's config.
        quantization: Quantizer's config.
        gate: EdgeValidator's config.
        enable_cache: whether a component with unchanged inputs is skipped.
    """
    splits = [example_gen_pb2.Input.Split(name=split, pattern=f"{split}/*") for split in SPLITS]
    example_gen = ImportExampleGen(input_base=data, input_config=example_gen_pb2.Input(splits=splits))
    statistics_gen = StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = SchemaGen(statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True)
    example_validator = ExampleValidator(statistics=statistics_gen.outputs["statistics"], schema=schema_gen.outputs["schema"])
    transform = Transform(
        examples=example_gen.outputs["examples"], schema=schema_gen.outputs["schema"], preprocessing_fn=f"{USER_CODE}.preprocessing_fn"
    )
    trainer = Trainer(
        run_fn=f"{USER_CODE}.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config={"epochs": epochs},
    )
    edge = edge_stage(trainer, transform, pruning=pruning, calibration=calibration, quantization=quantization, gate=gate)
    pusher = Pusher(
        model=edge.model,
        model_blessing=edge.blessing,
        push_destination=pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(base_directory=str(Path(root) / "pushed"))
        ),
    )
    return Pipeline(
        pipeline_name=name,
        pipeline_root=str(Path(root) / "artifacts"),
        components=[example_gen, statistics_gen, schema_gen, example_validator, transform, trainer, *edge, pusher],
        enable_cache=enable_cache,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(str(Path(root) / "metadata.db")),
        beam_pipeline_args=list(IN_MEMORY),
    )

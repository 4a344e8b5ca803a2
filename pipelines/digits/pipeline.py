"""From digits to a blessed int8 model: standard TFX up to the Trainer, then one call."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.local import local_pipeline
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
    return local_pipeline(
        root,
        data,
        name=name,
        user_code=USER_CODE,
        stage=lambda trainer, transform: edge_stage(
            trainer, transform, pruning=pruning, calibration=calibration, quantization=quantization, gate=gate
        ),
        custom_config={"epochs": epochs},
        enable_cache=enable_cache,
    )

"""From digits to a blessed int8 model on a release channel: standard TFX up to the Trainer, then one call."""

import os

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.schemas import (
    Budget,
    CalibrationConfig,
    FineTuningConfig,
    GateConfig,
    PromotionConfig,
    PruningConfig,
    QuantizationConfig,
    Slice,
    Threshold,
)

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
    promotion: PromotionConfig | None = None,
    enable_cache: bool = True,
) -> Pipeline:
    """Builds the pipeline for `LocalDagRunner`.

    Args:
        root: folder for `metadata.db`, the artifacts, `channels/` with the releases and `keys/` that sign them.
        data: folder that `digits.data.write_examples` wrote.
        name: of the pipeline in the metadata.
        epochs: of the Trainer.
        pruning: Pruner's config.
        calibration: CalibrationGen's config.
        quantization: Quantizer's config.
        gate: EdgeValidator's config.
        promotion: EdgePromoter's config; None: the channel canary in `channels/`, made at the first run, where root is a folder of this
            machine, by an absolute path. Elsewhere, as on Kubeflow, a Pusher to `pushed/`: keys are never made in a bucket.
        enable_cache: whether a component with unchanged inputs is skipped.
    """
    if promotion is None and os.path.isabs(root):
        keyring = os.path.join(root, "keys", "keyring.json")
        promotion = PromotionConfig(channels=os.path.join(root, "channels"), keyring=keyring, create=True)
    return local_pipeline(
        root,
        data,
        name=name,
        user_code=USER_CODE,
        stage=lambda trainer, transform: edge_stage(
            trainer, transform, pruning=pruning, calibration=calibration, quantization=quantization, gate=gate, promotion=promotion
        ),
        custom_config={"epochs": epochs},
        enable_cache=enable_cache,
    )

"""Images to an int8 MobileNet."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.images.data import LABEL
from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.schemas import Budget, CalibrationConfig, GateConfig, QuantizationConfig, Slice, Threshold

GATE = GateConfig(
    label_key=LABEL,
    thresholds=(
        Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02, lower_bound=0.9),
        Threshold(metric="SparseCategoricalAccuracy", max_drop=0.04, slices=(Slice(feature_keys=(LABEL,)),)),
    ),
    budget=Budget(min_gzip_ratio=3),
)


def create_pipeline(root: str, data: str, *, name: str = "images", gate: GateConfig = GATE, enable_cache: bool = True) -> Pipeline:
    """Builds the pipeline; see `local_pipeline`."""
    return local_pipeline(
        root,
        data,
        name=name,
        user_code="tfx_edge.pipelines.images.user_code",
        stage=lambda trainer, transform: edge_stage(
            trainer,
            transform,
            calibration=CalibrationConfig(strategy="stratified", stratify_by=LABEL, num_examples=150),
            quantization=QuantizationConfig(scheme="int8"),
            gate=gate,
        ),
        enable_cache=enable_cache,
    )

"""Taxi rides to an int8 model; its encodings of categories stay as they are."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.pipelines.taxi.data import LABEL
from tfx_edge.schemas import CalibrationConfig, GateConfig, QuantizationConfig, Slice, Threshold

GATE = GateConfig(
    label_key=LABEL,
    thresholds=(
        Threshold(metric="BinaryAccuracy", max_drop=0.01, lower_bound=0.8),
        Threshold(metric="AUC", max_drop=0.01),
        Threshold(metric="BinaryAccuracy", max_drop=0.05, slices=(Slice(feature_keys=("payment_type",)),)),
    ),
    min_examples=20,
)


def create_pipeline(root: str, data: str, *, name: str = "taxi", gate: GateConfig = GATE, enable_cache: bool = True) -> Pipeline:
    """Builds the pipeline; see `local_pipeline`."""
    return local_pipeline(
        root,
        data,
        name=name,
        user_code="tfx_edge.pipelines.taxi.user_code",
        stage=lambda trainer, transform: edge_stage(
            trainer,
            transform,
            calibration=CalibrationConfig(num_examples=300),
            quantization=QuantizationConfig(scheme="int8"),
            gate=gate,
        ),
        enable_cache=enable_cache,
    )

"""Signals to an int8 Conv1D network with int8 inputs and outputs, small enough for a microcontroller."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.sensor.data import LABEL
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.schemas import Budget, CalibrationConfig, GateConfig, QuantizationConfig, Slice, Threshold

GATE = GateConfig(
    label_key=LABEL,
    thresholds=(
        Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01, lower_bound=0.9),
        Threshold(metric="SparseCategoricalAccuracy", max_drop=0.03, slices=(Slice(feature_keys=(LABEL,)),)),
    ),
    budget=Budget(max_bytes=20_000),
)


def create_pipeline(root: str, data: str, *, name: str = "sensor", gate: GateConfig = GATE, enable_cache: bool = True) -> Pipeline:
    """Builds the pipeline; see `local_pipeline`."""
    return local_pipeline(
        root,
        data,
        name=name,
        user_code="tfx_edge.pipelines.sensor.user_code",
        stage=lambda trainer, transform: edge_stage(
            trainer,
            transform,
            calibration=CalibrationConfig(strategy="stratified", stratify_by=LABEL, num_examples=150),
            quantization=QuantizationConfig(scheme="int8", io_type="int8"),
            gate=gate,
        ),
        enable_cache=enable_cache,
    )

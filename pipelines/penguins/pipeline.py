"""Penguins to an int8 model that has int8 inputs and outputs."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.penguins.data import LABEL
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.schemas import CalibrationConfig, GateConfig, QuantizationConfig, Threshold

GATE = GateConfig(label_key=LABEL, thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02, lower_bound=0.9),))


def create_pipeline(root: str, data: str, *, name: str = "penguins", gate: GateConfig = GATE, enable_cache: bool = True) -> Pipeline:
    """Builds the pipeline; see `local_pipeline`."""
    return local_pipeline(
        root,
        data,
        name=name,
        user_code="tfx_edge.pipelines.penguins.user_code",
        stage=lambda trainer, transform: edge_stage(
            trainer,
            transform,
            calibration=CalibrationConfig(strategy="stratified", stratify_by=LABEL, num_examples=100),
            quantization=QuantizationConfig(scheme="int8", io_type="int8"),
            gate=gate,
        ),
        enable_cache=enable_cache,
    )

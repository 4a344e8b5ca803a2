"""Reviews to a model whose Dense layer has int8 weights; the quantizer has no int8 form of the LSTM and the embedding."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.pipelines.text.data import LABEL
from tfx_edge.schemas import GateConfig, QuantizationConfig, Threshold

GATE = GateConfig(
    label_key=LABEL,
    thresholds=(Threshold(metric="BinaryAccuracy", max_drop=0.01, lower_bound=0.9), Threshold(metric="AUC", max_drop=0.01)),
)


def create_pipeline(root: str, data: str, *, name: str = "text", gate: GateConfig = GATE, enable_cache: bool = True) -> Pipeline:
    """Builds the pipeline; see `local_pipeline`."""
    return local_pipeline(
        root,
        data,
        name=name,
        user_code="tfx_edge.pipelines.text.user_code",
        stage=lambda trainer, transform: edge_stage(trainer, transform, quantization=QuantizationConfig(scheme="dynamic_range"), gate=gate),
        enable_cache=enable_cache,
    )

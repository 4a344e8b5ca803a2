"""What is done to a model between the Trainer and the gate."""

from pydantic import Field

from tfx_edge.schemas.calibration import CalibrationConfig
from tfx_edge.schemas.clustering import ClusteringConfig
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.distillation import DistillationConfig
from tfx_edge.schemas.low_rank import LowRankConfig
from tfx_edge.schemas.pruning import PruningConfig
from tfx_edge.schemas.quantization import QuantizationConfig


class Techniques(Config):
    """The steps of an edge stage, in this order; None leaves one out."""

    distillation: DistillationConfig | None = Field(default=None, description="A smaller student in the model's place.")
    low_rank: LowRankConfig | None = Field(default=None, description="Thinner layers in place of wide ones.")
    pruning: PruningConfig | None = Field(default=None, description="Weights that are zero, or fewer channels.")
    clustering: ClusteringConfig | None = Field(default=None, description="Weights of few values.")
    quantization: QuantizationConfig = Field(
        default=QuantizationConfig(), description="Scheme of the edge model, by calibration or by training."
    )
    calibration: CalibrationConfig = Field(
        default=CalibrationConfig(), description="Which examples activation ranges are taken from, where the scheme needs ranges."
    )
